"""What is printed, and where: results on standard output, warnings and errors on standard error."""

from __future__ import annotations

import errno
import sys
from contextlib import suppress
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


def line(text: str = "", stream: TextIO | None = None) -> None:
    """One line on standard output, or elsewhere."""
    block(printed(text), stream)


def block(text: str, stream: TextIO | None = None) -> None:
    """Lines that are our own throughout, such as JSON."""
    out = sys.stdout if stream is None else stream
    try:
        out.write(text + "\n")
    except (OSError, ValueError) as error:
        raise _not_written(error) from error


def flush() -> None:
    """Send what was printed on its way now, while an error can still be reported."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError) as error:
        raise _not_written(error) from error


def _not_written(error: OSError | ValueError) -> OSError:
    """A broken pipe stays one; ValueError is a stream that was closed."""
    number = (error.errno if isinstance(error, OSError) else None) or errno.EBADF
    return OSError(number, f"cannot write to standard output ({getattr(error, 'strerror', None) or error})")


def print_warnings(messages: list[str]) -> None:
    """Warnings, one on each line, on standard error."""
    for message in messages:
        line(f"biclique: warning: {message}", sys.stderr)


def print_sizes(clusters: list[dict[str, int]], without: int, unit: str) -> None:
    """A line for every cluster, and one for what is in none."""
    line()
    line(f"{'cluster':>7}  {unit:>8}  {'share':>7}")
    sizes = {str(cluster["label"]): cluster[unit] for cluster in clusters}
    if without:
        sizes["none"] = without
    for label, size in sizes.items():
        line(f"{label:>7}  {size:>8}  {size / sum(sizes.values()):>7.1%}")


def print_output(output: str | None) -> None:
    """Where the labels are, if they were written."""
    if output is not None:
        line()
        line(f"labels written to {'standard output' if output == STDOUT else output}")


def fail(message: str, code: int) -> int:
    """Say in one line what went wrong."""
    with suppress(OSError, ValueError):
        sys.stderr.write(f"biclique: error: {printed(message)}\n")
        sys.stderr.flush()
    return code
