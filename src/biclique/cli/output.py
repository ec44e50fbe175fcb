"""What is printed, and where: results on standard output, warnings and errors on standard error."""

import errno
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

STDOUT = "/dev/stdout"
"""What ``-o -`` stands for."""
EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_DATA = 3
EXIT_MEMORY = 4
EXIT_SIGNAL = 128
"""With the number of the signal added: 130 is Ctrl-C."""
EXIT_CODES = """\
exit codes:
  0  done, or whoever reads what is printed has stopped reading
  1  failed for another reason, such as a full disk
  2  an option is wrong
  3  the data cannot be used (unreadable, missing values, too few rows)
  4  the work does not fit the memory
  130, 143, 129  interrupted, terminated, hung up; the message says whether the output file was written
"""


def printed(text: str) -> str:
    """One line that a terminal shows as it is."""
    if text.isprintable():  # our own words: an interrupt is reported before anything large is imported
        return text
    from biclique.exceptions import printable

    return printable(text)


@contextmanager
def _writing() -> Iterator[None]:
    """A broken pipe stays one; ValueError is a stream that was closed."""
    try:
        yield
    except (OSError, ValueError) as error:
        number = (error.errno if isinstance(error, OSError) else None) or errno.EBADF
        why = getattr(error, "strerror", None) or error
        raise OSError(number, f"cannot write to standard output ({why})") from error


def block(text: str, stream: TextIO | None = None) -> None:
    """Lines that are our own throughout, such as JSON, on standard output or elsewhere."""
    with _writing():
        (stream or sys.stdout).write(text + "\n")


def print_lines(lines: Sequence[str], stream: TextIO | None = None) -> None:
    """Lines with names that come from outside, such as those of files and columns."""
    if lines:
        block("\n".join(map(printed, lines)), stream)


def flush() -> None:
    """Send what was printed on its way now, while an error can still be reported."""
    with _writing():
        sys.stdout.flush()


def fail(message: str, code: int, more: Sequence[str] = ()) -> int:
    """Say in one line what went wrong, with more lines below it if there are any; returns the exit code."""
    with suppress(OSError, ValueError):
        sys.stderr.write("\n".join([f"biclique: error: {printed(message)}", *map(printed, more), ""]))
        sys.stderr.flush()
    return code


def size_lines(clusters: Sequence[dict[str, int]], without: int, unit: str) -> list[str]:
    """A line for every cluster, and one for what is in none."""
    sizes = {str(cluster["label"]): cluster[unit] for cluster in clusters}
    if without:
        sizes["none"] = without
    shares = [f"{label:>7}  {size:>8}  {size / sum(sizes.values()):>7.1%}" for label, size in sizes.items()]
    return ["", f"{'cluster':>7}  {unit:>8}  {'share':>7}", *shares]


def output_lines(output: str | None) -> list[str]:
    """Where the labels are, if they were written."""
    where = "standard output" if output == STDOUT else output
    return [] if output is None else ["", f"labels written to {where}"]
