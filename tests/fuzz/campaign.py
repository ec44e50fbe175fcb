"""Many damaged files through one reader: each must give an answer, or an error of ours, and soon."""

from __future__ import annotations

import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from biclique.exceptions import BicliqueError
from tests.fuzz.mutate import Files, mutate

SLOWEST = 10.0
"""Seconds that one file may take."""


@dataclass(frozen=True)
class Reader:
    """What is tried: whole files of a kind, and the function that reads one."""

    seeds: Callable[[], list[Files]]
    read: Callable[[Path], Any]
    name: str
    """The file that is read, or the folder where files are several."""
    folder: bool = False


class Hang(BaseException):
    """A file took too long. No Exception, so that no reader takes it for damage."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Hang in what takes longer."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Report:
    """What became of the files of a campaign, or of its fits or kills."""

    what: str = "files"
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def __str__(self) -> str:
        counts = ", ".join(f"{kind} {count}" for kind, count in self.outcomes.most_common())
        return f"{self.count} {self.what}, {len(self.failures)} failures, slowest {self.slowest:.2f} s ({counts})"

    @property
    def count(self) -> int:
        return sum(self.outcomes.values())

    def show(self, title: str, failures: int = 10) -> bool:
        """Print the numbers and some failures; whether there is one."""
        sys.stdout.write("\n    ".join([f"{title}: {self}", *self.failures[:failures]]) + "\n")
        sys.stdout.flush()
        return bool(self.failures)

    def judge(self, name: str, call: Callable[[], Any], ignored: type[Warning] | None = None) -> None:
        """One more: a text that the call returns says what is wrong; a warning and an error not of ours are wrong."""
        start = time.perf_counter()
        outcome, failure = "done", ""
        try:
            with limited(SLOWEST), warnings.catch_warnings():
                warnings.simplefilter("error")
                if ignored is not None:
                    warnings.simplefilter("ignore", ignored)
                found = call()
            if isinstance(found, str) and found:
                outcome, failure = "broken", found
        except BicliqueError as error:
            outcome, failure = type(error).__name__, "" if str(error).isprintable() else f"message {str(error)!r}"
        except Hang:
            outcome, failure = "hang", f"more than {SLOWEST:g} s"
        except BaseException as error:
            outcome, failure = "traceback", "".join(traceback.format_exception(error))[-1500:]
        self.add(name, outcome, failure, time.perf_counter() - start)

    def add(self, name: str, outcome: str, failure: str, seconds: float) -> None:
        """One more, and why it is a failure: nothing if it is none."""
        self.outcomes[outcome] += 1
        self.slowest = max(self.slowest, seconds)
        if failure:
            self.failures.append(f"{name}: {failure}")


def put(files: Files, reader: Reader, folder: Path) -> Path:
    """Write a file, or a folder of them, and say where it is."""
    path = folder / reader.name
    if reader.folder:
        shutil.rmtree(path, ignore_errors=True)  # of files that the one before had and this has not
    for name, content in files.items():
        file = path / name if reader.folder else path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return path


def run(reader: Reader, n_files: int, seed: int, folder: Path) -> Report:
    """Read so many damaged files. File i of a seed is the same, however many there are."""
    report = Report()
    seeds = reader.seeds()
    for number in range(n_files):
        draw = random.Random(f"{seed}/{number}")
        path = put(mutate(draw.choice(seeds), seeds, draw), reader, folder)
        report.judge(f"seed {seed}, file {number}", partial(reader.read, path))
    return report
