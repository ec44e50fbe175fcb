"""A few fits give what they gave when ``stored.json`` was written, on any CPU.

``python -m tests.golden --write`` writes that file anew. That is allowed only if results were meant to change; the
commit then says which and why.
"""

import numpy as np
import pytest

from tests.golden.cases import CASES
from tests.golden.compare import differences
from tests.golden.stored import FILE, STORED, changes, read


@pytest.mark.parametrize("name", STORED)
def test_stored_results(name):
    lacks = CASES[name].lacks()
    if lacks:
        pytest.skip(f"needs {', '.join(lacks)}")
    assert changes(name, read()[name]) == []


def test_the_stored_file():
    assert tuple(read()) == STORED
    assert FILE.stat().st_size < 400_000


def test_there_are_many_cases():
    assert len(CASES) >= 200


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        (np.array([0, 1, 1]), np.array([0, 1, 2]), "1 of 3 entries differ"),
        (np.array([0, 1]), np.array([0.0, 1.0]), r"int64 of shape \(2,\) -> float64"),
        (np.array([1.0, 1e3]), np.array([1.0 + 1e-5, 1e3]), "differs by 1e-05, the largest is 1e+03"),
        (np.array([np.inf]), np.array([-np.inf]), "other infinite values"),
        (np.array([np.nan, 1]), np.array([1, 1.0]), "1 of 2 are finite in one alone"),
        (0.5, 0.5 + 1e-8, "0.5 -> "),
        (1, 1.0, "1 -> 1.0"),
        ("dense", "tiled", "'dense' -> 'tiled'"),
        (None, np.array([1.0]), "None -> an array"),
    ],
)
def test_differences_are_found(old, new, how):
    ((name, said),) = differences({"value_": old}, {"value_": new})
    assert name == "value_"
    assert said.startswith(how.replace("\\", ""))
    assert not list(differences({"value_": old}, {"value_": old}))


def test_noise_is_no_difference():
    old, new = np.array([1.0, 1e3]), np.array([1.0 + 1e-8, 1e3])
    assert not list(differences({"value_": old}, {"value_": new}))
    assert list(differences({"value_": old}, {})) == [("value_", "is gone, was an array of shape (2,)")]
    assert list(differences({}, {"value_": 1})) == [("value_", "is new: 1")]
