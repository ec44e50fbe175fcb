"""What the commands share: kinds of options, warnings."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from biclique.exceptions import BicliqueWarning
from biclique.spectral import ASSIGNERS

# Kinds of options


def number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def count_or_auto(text: str) -> int | str:
    if text != "auto" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number or auto, got {text!r}")
    return text if text == "auto" else int(text)


def count_or_select(text: str) -> int | str:
    if text == "select":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or select, got {text!r}") from None


def seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**32 - 1, got {text!r}")
    return int(text)


def order(text: str) -> float | str:
    value = number_or_word(text)
    if isinstance(value, str) and value not in ("auto", "select"):
        raise argparse.ArgumentTypeError(f"must be a number from 2 to inf, auto or select, got {text!r}")
    return value


def add_assignment_options(model: Any) -> None:
    """From the embedding to labels: the same for tables and hypergraphs."""
    model.add_argument("--assign-labels", choices=list(ASSIGNERS), default="kmeans", help="(default: kmeans)")
    model.add_argument("--n-init", type=int, default=10, metavar="N", help="starts of k-means (default: 10)")
    model.add_argument("--seed", type=seed, default=0, help="of everything random (default: 0)")


def add_work_options(work: Any, *, max_iter: int, passes_over: str) -> None:
    """Eigenpairs, memory, threads and output: the same for tables and hypergraphs."""
    work.add_argument("--tol", type=number_or_word, default="auto", help="of eigenpairs, relative to the eigengap")
    work.add_argument("--max-iter", type=int, default=max_iter, metavar="N", help=f"most passes over the {passes_over}")
    work.add_argument(
        "--memory-limit", default="auto", metavar="SIZE", help="such as 4GB (default: half of what is free)"
    )
    work.add_argument("--jobs", type=int, default=None, metavar="N", help="threads (default: every core)")
    work.add_argument("--json", action="store_true", help="print the result as JSON")
    work.add_argument("-q", "--quiet", action="store_true", help="print errors only")


# Warnings


@contextmanager
def caught_messages() -> Iterator[list[str]]:
    """Our warnings as a list of texts, which is filled when the block ends."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BicliqueWarning)
        yield messages
    messages.extend(str(w.message) for w in caught if issubclass(w.category, BicliqueWarning))
