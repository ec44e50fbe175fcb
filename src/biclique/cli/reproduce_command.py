"""``biclique reproduce``: the paper's tables and figures."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any

from biclique.cli import signals
from biclique.cli.text import EXIT_CODES, EXIT_OK, EXIT_SIGNAL, block, line
from biclique.progress import PLAIN_SECONDS
from biclique.reproduce import TARGETS, reproduce
from biclique.reproduce.printed import DATA

EXAMPLES = """\
examples:
  biclique reproduce table1 --data iris --quick --out quick
  biclique reproduce all --jobs 4
  biclique reproduce all --jobs 4 --resume
"""


def add_command(commands: Any) -> None:
    """``biclique reproduce TARGET``."""
    parser = commands.add_parser(
        "reproduce",
        help="regenerate the paper's tables and figures",
        description="Regenerate the paper's tables and figures from its data. Every finished cell is a record in "
        "FOLDER: a run that was stopped goes on with --resume.",
        epilog="Data sets are looked for in --data-home, else in the folder named by BICLIQUE_DATA, else fetched.\n\n"
        f"{EXAMPLES}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=_reproduce)
    parser.add_argument("target", metavar="TARGET", choices=list(TARGETS), help=", ".join(TARGETS))
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA), help="data sets (default: all)")
    parser.add_argument("--data-home", metavar="FOLDER", help="where the data sets lie")
    parser.add_argument("--out", metavar="FOLDER", default="reproduction", help="(default: reproduction)")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, orders and sequences: minutes")
    parser.add_argument("--resume", action="store_true", help="go on with the run in FOLDER")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--page", metavar="FILE", help="also write the whole page to FILE, its figures beside it")
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def _reproduce(options: argparse.Namespace) -> int:
    words = ["biclique", "reproduce", options.target]
    if list(options.data) != list(DATA):
        words += ["--data", *options.data]
    words += [
        flag for flag, given in (("--quick", options.quick), ("--jobs " + str(options.jobs), options.jobs > 1)) if given
    ]
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
            command=" ".join(words),
            verbose=0 if options.quiet else PLAIN_SECONDS,
        )
    except KeyboardInterrupt:
        signals.listen_no_more()
        number = signals.came() or signal.SIGINT
        word = signals.WORDS[number]
        line(f"biclique: {word}; finished cells are kept in {options.out}, go on with --resume", sys.stderr)
        return EXIT_SIGNAL + number
    if not options.quiet:
        for table in tables.values():
            block(table.markdown())
        line(f"tables, records and any figures are in {options.out}")
    return EXIT_OK
