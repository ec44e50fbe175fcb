"""Golden cases run, ask for everything that they need, and are compared as they should be."""

import numpy as np
import pytest

from tests.golden.cases import CASES, parameters_of
from tests.golden.compare import differences
from tests.golden.record import run_case


@pytest.mark.parametrize(
    "name",
    [
        "order/dense/4",
        "order/nystroem/2.1",
        "order/similarities/inf",
        "order/embedding/2",
        "kernel k-means/weights paper/4",
        "hypergraph/star/2",
        "subspaces/lines",
        "source/csr/dense",
    ],
)
def test_cases_run(name):
    record = run_case(CASES[name])
    assert "error" not in record
    assert not record["warnings"]
    assert not list(differences(record, run_case(CASES[name])))


def test_there_are_many_cases():
    assert len(CASES) >= 400


def test_no_case_leaves_a_choice_to_a_rule():
    with pytest.raises(ValueError, match="leaves a choice to a rule"):
        parameters_of("clustering", "blobs", {"order": "auto"})


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        (np.array([0, 1, 1]), np.array([0, 1, 2]), "1 of 3 entries differ"),
        (np.array([0, 1]), np.array([0.0, 1.0]), "int64 of shape (2,) -> float64"),
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
    ((name, how_found),) = differences({"value_": old}, {"value_": new})
    assert name == "value_"
    assert how_found.startswith(how)
    assert not list(differences({"value_": old}, {"value_": old}))


def test_noise_is_no_difference():
    old, new = np.array([1.0, 1e3]), np.array([1.0 + 1e-8, 1e3])
    assert not list(differences({"value_": old}, {"value_": new}))
    assert list(differences({"value_": old}, {})) == [("value_", "is gone, was an array of shape (2,)")]
    assert list(differences({}, {"value_": 1})) == [("value_", "is new: 1")]
