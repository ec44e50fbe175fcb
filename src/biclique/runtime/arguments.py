"""Arguments of a kind, checked: what came, what is allowed, and the way out."""

from collections.abc import Callable, Collection, Iterable, Iterator
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np
from sklearn.utils import check_random_state

from biclique.exceptions import ParameterError


class Names(Collection[str]):
    """Names that a table has now: one that is added to the table later is among them."""

    def __init__(self, find: Callable[[], Iterable[str]]) -> None:
        self._find = find

    def __contains__(self, name: object) -> bool:
        return name in tuple(self._find())

    def __iter__(self) -> Iterator[str]:
        return iter(self._find())

    def __len__(self) -> int:
        return len(tuple(self._find()))

    def __repr__(self) -> str:
        return repr(tuple(self._find()))


def check_choice(name: str, value: object, allowed: Collection[str]) -> None:
    """An argument that is one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        near = get_close_matches(value, allowed, n=1) if isinstance(value, str) else []
        meant = f": did you mean {near[0]!r}?" if near else "."
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}{meant}")


def require(allowed: bool, name: str, what: str, value: object) -> None:
    """Refuse an argument that is not what it must be."""
    if not allowed:
        raise ParameterError(f"{name} must be {what}, got {value!r}.")


MOST_STARTS = 10_000
"""Of k-means: with more, a fit would not end."""


def check_count(name: str, value: object, *, least: int = 1, most: int = 2**63 - 1) -> int:
    """An argument that is a whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    if int(value) > most:
        shown = f"{int(value)}" if int(value) < 10**20 else f"a number of {len(str(int(value)))} digits"
        raise ParameterError(f"{name} must be at most {most}, got {shown}.")
    return int(value)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a real number that is finite as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:  # a whole number beyond 1e308
        return False


def check_number(name: str, value: object, *, least: float = -np.inf) -> None:
    """An argument that is a finite real number."""
    bound = f" of at least {least:g}" if np.isfinite(least) else ""
    require(is_number(value) and value >= least, name, f"a finite number{bound}", value)


def check_flag(name: str, value: object) -> None:
    """An argument that is true or false."""
    require(isinstance(value, (bool, np.bool_)), name, "True or False", value)


def check_jobs(n_jobs: object) -> None:
    """A number of threads, as joblib takes it."""
    number = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) and n_jobs != 0
    require(number or n_jobs is None, "n_jobs", "None or -1 (every core) or a number of threads", n_jobs)


def check_random(random_state: object) -> np.random.RandomState:
    """``random_state`` as a generator: None, a whole number below 2³² or a RandomState."""
    whole = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if whole and not 0 <= int(random_state) < 2**32:  # type: ignore[call-overload]
        raise ParameterError(f"random_state must be from 0 to 2**32 − 1, got {random_state!r}.")
    if whole or random_state is None or isinstance(random_state, np.random.RandomState):
        random: np.random.RandomState = check_random_state(random_state)
        return random
    raise ParameterError(
        f"random_state must be None, a whole number or a numpy.random.RandomState, got {random_state!r}: a seed from a "
        "Generator is int(rng.integers(2**32))."
    )


def fixed_seed(random_state: int | np.random.RandomState | None) -> int:
    """A number that all draws come from: the seed itself, or one that a generator is asked for once."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random(random_state).randint(2**31))
