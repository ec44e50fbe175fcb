"""Many damaged files through one reader: each must give an answer, or an error of ours, and soon."""

import random
import shutil
import signal
import traceback
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from biclique.exceptions import BicliqueError
from tests.fuzz.mutate import mutate

SLOWEST = 10.0
"""Seconds that one file may take."""


@dataclass(frozen=True)
class Reader:
    """What is tried: whole files of a kind, and the function that reads one."""

    seeds: Callable[[], list[bytes | dict[str, bytes]]]
    """Whole files; of folders, the contents by name."""
    read: Callable[[Path], object]
    name: str
    """The file that is read, or the folder where files are several."""
    folder: bool = False


class Hang(BaseException):
    """A file took too long. No Exception, so that no reader takes it for damage."""


@contextmanager
def limited(seconds):
    """Raise Hang in what takes longer."""

    def stop(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judge(call, ignored=None):
    """What is wrong: a text that the call returns, a warning, an error not of ours; nothing if all is well."""
    try:
        with limited(SLOWEST), warnings.catch_warnings():
            warnings.simplefilter("error")
            if ignored is not None:
                warnings.simplefilter("ignore", ignored)
            found = call()
        return found if isinstance(found, str) else ""
    except BicliqueError as error:
        return "" if str(error).isprintable() else f"message {str(error)!r}"
    except Hang:
        return f"more than {SLOWEST:g} s"
    except BaseException as error:
        return "".join(traceback.format_exception(error))[-1500:]


def put(files, reader, folder):
    """Write a file, or a folder of them, and say where it is."""
    path = folder / reader.name
    if reader.folder:
        shutil.rmtree(path, ignore_errors=True)  # of files that the one before had and this has not
    for name, content in files.items():
        file = path / name if reader.folder else path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return path


def run(reader, n_files, seed, folder):
    """The failures of so many damaged files. File i of a seed is the same, however many there are."""
    failures = []
    seeds = [seed if reader.folder else {"": seed} for seed in reader.seeds()]
    for number in range(n_files):
        draw = random.Random(f"{seed}/{number}")
        path = put(mutate(draw.choice(seeds), seeds, draw), reader, folder)
        failure = judge(partial(reader.read, path))
        if failure:
            failures.append(f"seed {seed}, file {number}: {failure}")
    return failures
