"""``biclique reproduce``: the paper's tables and figures."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass

from biclique.cli import signals
from biclique.cli.options import Command, Quiet, option, switch
from biclique.cli.output import EXIT_SIGNAL, block, line
from biclique.reproduce.everything import TARGETS, reproduce
from biclique.reproduce.printed import DATA

EXAMPLES = """\
Data sets are looked for in --data-home, else in the folder named by BICLIQUE_DATA, else fetched.

examples:
  biclique reproduce table1 --data iris --quick --out quick
  biclique reproduce all --jobs 4
  biclique reproduce all --jobs 4 --resume
"""


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Quiet):
    target: str = option(metavar="TARGET", choices=list(TARGETS), help=", ".join(TARGETS))
    data: tuple[str, ...] = option("--data", default=DATA, nargs="+", choices=DATA, help="data sets (default: all)")
    data_home: str | None = option("--data-home", metavar="FOLDER", help="where the data sets lie")
    out: str = option("--out", default="reproduction", metavar="FOLDER", help="(default: reproduction)")
    quick: bool = switch("--quick", help="fewer repeats, orders and sequences: minutes")
    resume: bool = switch("--resume", help="go on with the run in FOLDER")
    jobs: int = option("--jobs", default=1, type=int, metavar="N", help="processes (default: 1)")
    page: str | None = option("--page", metavar="FILE", help="also write the whole page to FILE, its figures beside it")

    @property
    def repeated_by(self) -> str:
        """The command without folders: the page shows it."""
        words = ["biclique", "reproduce", self.target]
        if self.data != tuple(DATA):
            words += ["--data", *self.data]
        words += ["--quick"] * self.quick
        words += ["--jobs", str(self.jobs)] * (self.jobs > 1)
        return " ".join(words)


def run(options: ReproduceOptions) -> int | None:
    try:
        tables = reproduce(
            options.target,
            data=options.data,
            out=options.out,
            data_home=options.data_home,
            quick=options.quick,
            resume=options.resume,
            jobs=options.jobs,
            page=options.page,
            command=options.repeated_by,
            verbose=options.verbose,
        )
    except KeyboardInterrupt:
        signals.Heard.listening = False
        number = signals.Heard.number or signal.SIGINT
        word = signals.WORDS[number]
        line(f"biclique: {word}; finished cells are kept in {options.out}, go on with --resume", sys.stderr)
        return EXIT_SIGNAL + number
    if not options.quiet:
        for table in tables.values():
            block(table.markdown())
        line(f"tables, records and any figures are in {options.out}")
    return None


add_to = Command(
    run,
    ReproduceOptions,
    "Regenerate the paper's tables and figures from its data. Every finished cell is a record in FOLDER: a run that "
    "was stopped goes on with --resume.",
    EXAMPLES,
).add_to
