"""Run a benchmark and keep what it printed, with the machine, the versions and the code that was measured, as JSON.

    python benchmarks/record.py exact -- python benchmarks/exact.py --sizes 10000
    python benchmarks/record.py motion --code hypergraph spectral -- python benchmarks/motion.py --data FOLDER
    python benchmarks/record.py gpu --printed FILE --command "python benchmarks/gpu.py" --machine "NVIDIA H200"
    python benchmarks/record.py exact --again

The first runs the command, shows its output and writes benchmarks/records/exact.json. The second names the code that
decides what is printed. The third takes an output that was saved before, on this machine or on another one. The last
runs the command of a record again. FOLDER in a command is the value of BICLIQUE_DATA, the folder of data sets.
Tables of Markdown are kept with the last line of text above them as their title. ``python docs/pages.py`` puts them
into the pages, and finds numbers of pages that were not printed.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records"
PACKAGE = Path(__file__).parent.parent / "src" / "biclique"
MEASURED = ("cluster", "device", "features", "fit", "gram", "kernels", "neighbors", "rows", "runtime", "spectral")
"""Folders of the package whose code decides what a benchmark prints, if ``--code`` names no others."""
OLD = 0.2
"""A record is too old if functions with more than this share of the lines that it measured have changed since."""
KEPT = ("command", "code", "note")
"""What ``--again`` takes from the record."""
PACKAGES = (
    *("biclique", "numpy", "scipy", "scikit-learn", "finufft", "faiss-cpu", "hdbscan", "genieclust"),
    *("dask-ml", "ncut-pytorch", "torch", "triton", "xgi", "hypernetx", "hypergraphx", "pandas"),
)


def tables_of(output: str) -> list[dict[str, Any]]:
    """Tables of Markdown in a text: title, columns, and rows of texts."""
    tables: list[dict[str, Any]] = []
    title, inside = "", False
    for line in output.splitlines():
        text = line.strip()
        if not text.startswith("|"):
            inside = False
            title = text.lstrip("# ") or title
            continue
        cells = [cell.strip() for cell in text.replace(r"\|", "\0").strip("|").split("|")]
        cells = [cell.replace("\0", "|") for cell in cells]
        if not inside:
            tables.append({"title": title, "columns": cells, "rows": []})
            inside = True
        elif not set(text) <= set("|-: "):
            tables[-1]["rows"].append(cells)
    return tables


def text_of(output: str) -> list[str]:
    """The lines that belong to no table."""
    return [line.strip() for line in output.splitlines() if line.strip() and not line.strip().startswith("|")]


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def source(code: Sequence[str] = MEASURED) -> dict[str, dict[str, int]]:
    """The functions of some folders or files: the digest of each and its lines, without docstrings and comments."""
    found = [[PACKAGE / part] if part.endswith(".py") else (PACKAGE / part).rglob("*.py") for part in code]
    files = sorted({path for paths in found for path in paths if path.exists()})
    return {path.relative_to(PACKAGE).as_posix(): functions(path.read_text(encoding="utf-8")) for path in files}


def functions(text: str) -> dict[str, int]:
    """Digests of the functions of a file, and of what is between them, with their lines."""
    text = re.sub(r'"{3}[\s\S]*?"{3}|#.*', "", text)
    code = "\n".join(line for line in text.splitlines() if line.strip())
    parts = re.split(r"^(?= *(?:def|class|@))", code, flags=re.MULTILINE)
    return {hashlib.sha256("".join(part.split()).encode()).hexdigest()[:6]: len(part.splitlines()) for part in parts}


def changed(record: dict[str, Any]) -> float:
    """The share of today's measured lines that are in functions which the record did not measure as they are."""
    measured, now = record.get("source", {}), source(record.get("code", MEASURED))
    lines = [(n, digest in measured.get(name, ())) for name, found in now.items() for digest, n in found.items()]
    return sum(n for n, known in lines if not known) / sum(n for n, _ in lines)


def machine() -> str:
    """Cores, kind and memory of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9 if hasattr(os, "sysconf") else 0
    return f"{os.cpu_count()} cores, {platform.machine()}" + (f", {memory:.0f} GB" if memory else "")


def run(command: str) -> str:
    """The output of a command, which is shown as it comes."""
    lines = []
    words = {"python": sys.executable, "FOLDER": os.environ.get("BICLIQUE_DATA", "FOLDER")}
    given = [words.get(word, word) for word in shlex.split(command)]
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        for line in process.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line)
    if process.returncode:
        raise SystemExit(f"record.py: the command ended with exit code {process.returncode}; nothing was written")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the record")
    parser.add_argument("--again", action="store_true", help="the command, the code and the note of the record")
    parser.add_argument("--code", nargs="+", default=MEASURED, help="folders and files below src/biclique")
    parser.add_argument("--printed", type=Path, help="an output that was saved before")
    parser.add_argument("--command", help="what printed it")
    parser.add_argument("--machine", default=machine(), help="where")
    parser.add_argument("--versions", help='JSON, such as {"torch": "2.11.0"}')
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("--note", default="", help="one sentence for the page")
    parser.add_argument("--reference", default="", help="such as the seconds of a matrix product; not for the page")
    before, _, after = "\0".join(sys.argv[1:]).partition("\0--\0")
    options = parser.parse_args(before.split("\0"))
    path = RECORDS / f"{options.name}.json"
    if options.again:
        parser.set_defaults(
            **{key: value for key, value in json.loads(path.read_text(encoding="utf-8")).items() if key in KEPT}
        )
        options = parser.parse_args(before.split("\0"))
    command = shlex.join(after.split("\0")) if after else options.command
    if not command:
        parser.error("give a command after --, or --printed FILE with --command, or --again")
    output = options.printed.read_text(encoding="utf-8") if options.printed else run(command)
    if not output.strip():
        raise SystemExit("record.py: the command printed nothing; nothing was written")
    record = {
        "command": command,
        "date": options.date,
        "machine": options.machine,
        "versions": json.loads(options.versions) if options.versions else versions(),
        "note": options.note,
        "reference": options.reference,
        "tables": tables_of(output),
        "text": text_of(output),
        "code": list(options.code),
        "source": {name: " ".join(found) for name, found in source(options.code).items()},
    }
    RECORDS.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\nwrote {path}")


if __name__ == "__main__":
    main()
