"""Ctrl-C, SIGTERM and SIGHUP end a command where it is: one line says what was written, and nothing else stays."""

import os
import signal
import sys
from types import FrameType

from biclique.cli.output import EXIT_SIGNAL, printed

NAMES = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
WORDS = {getattr(signal, name): word for name, word in NAMES.items() if hasattr(signal, name)}
"""By the number of the signal; Windows has no SIGHUP."""


def listen() -> None:
    """End the process at any of the signals. What is ignored stays so: nohup means it."""
    for number in WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


def ignore() -> None:
    """The work is done: nothing may spoil its exit code."""
    for number in WORDS:
        signal.signal(number, signal.SIG_IGN)


def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    """End the process and its workers. Nothing is raised: code may drop an exception, or take long to hear it."""
    try:
        line = f"biclique: error: {WORDS[signal.Signals(number)]}; {printed(outcome() or 'nothing was written')}\n"
        os.write(2, f"{chr(10) * os.isatty(2)}{line}".encode(errors="replace"))  # the stream may be in use
        for process in getattr(sys.modules.get("multiprocessing"), "active_children", list)():
            process.kill()
    finally:
        os._exit(EXIT_SIGNAL + number)


def outcome() -> str:
    """What became of the output, in words, once temporary files are gone; empty if there is none."""
    files = getattr(sys.modules.get("biclique.tables.atomic_files"), "files", None)  # it may not be imported yet
    if files is None:
        return ""
    words: str = files.outcome
    files.discard()
    return words
