"""Names from data in messages. The command line needs this file before anything large is imported."""

from __future__ import annotations


def printable(text: object) -> str:
    r"""One line that a terminal shows as it is: ``\n`` for a line end, ``\x1b`` for what starts its commands.

    Names of files, columns, classes and rows can hold anything.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))
