"""``biclique reproduce``: the paper's tables and figures."""

from dataclasses import dataclass

from biclique.cli.options import Command, Facts, Quiet, Warned, option, switch
from biclique.reproduce.everything import TARGETS, reproduce
from biclique.reproduce.printed import DATA
from biclique.tables.atomic_files import files

EXAMPLES = """\
Data sets are looked for in --data-home, else in the folder named by BICLIQUE_DATA, else fetched.

examples:
  biclique reproduce table1 --data iris --quick --out quick
  biclique reproduce all --jobs 4
  biclique reproduce all --jobs 4 --resume
"""


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Quiet):
    """Regenerate the paper's tables and figures from its data.

    Every finished cell is a record in FOLDER: a run that was stopped goes on with --resume.
    """

    target: str = option(", ".join(TARGETS), metavar="TARGET", choices=list(TARGETS))
    data: tuple[str, ...] = option("data sets (default: all)", "--data", default=DATA, nargs="+", choices=DATA)
    data_home: str | None = option("where the data sets lie", "--data-home", metavar="FOLDER")
    out: str = option("(default: reproduction)", "--out", default="reproduction", metavar="FOLDER")
    quick: bool = switch("fewer repeats, orders and sequences: minutes", "--quick")
    resume: bool = switch("go on with the run in FOLDER", "--resume")
    jobs: int = option("processes (default: 1)", "--jobs", default=1)
    page: str | None = option("also write the whole page to FILE, its figures beside it", "--page", metavar="FILE")

    @property
    def command(self) -> str:
        """The command without folders: the page shows it."""
        words = ["biclique", "reproduce", self.target]
        words += ["--data", *self.data] if self.data != tuple(DATA) else []
        words += [*["--quick"] * self.quick, *(["--jobs", str(self.jobs)] if self.jobs > 1 else [])]
        return " ".join(words)


def run(options: ReproduceOptions, warned: Warned) -> Facts:  # noqa: ARG001
    files.kept = f"finished cells are kept in {options.out}, go on with --resume"
    tables = reproduce(**options.parameters(reproduce))
    files.kept = ""
    return {"tables": [table.markdown() for table in tables.values()], "out": options.out}


def lines(facts: Facts) -> list[str]:
    """The tables, and where they are."""
    shown = [line for table in facts["tables"] for line in table.split("\n")]
    return [*shown, f"tables, records and any figures are in {facts['out']}"]


add_to = Command(ReproduceOptions, run, lines, EXAMPLES).add_to
