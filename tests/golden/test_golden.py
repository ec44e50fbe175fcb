"""Golden cases run, ask for everything that they need, and are compared as they should be."""

import numpy as np
import pytest

from tests.golden.cases import CASES, parameters_of
from tests.golden.record import differences, run_case


@pytest.mark.parametrize(
    "name",
    [
        *("order/dense/4", "order/nystroem/2.1", "order/similarities/inf", "order/embedding/2", "hypergraph/star/2"),
        *("kernel k-means/weights paper/4", "subspaces/lines", "source/csr/dense", "source/memory map/dense"),
    ],
)
def test_cases_run(name):
    record = run_case(CASES[name])
    assert record["error"] is None
    assert not record["warnings"]
    assert not list(differences(record, run_case(CASES[name])))


def test_there_are_many_cases():
    assert len(CASES) >= 380


def test_no_case_leaves_a_choice_to_a_rule():
    with pytest.raises(ValueError, match="leaves a choice to a rule"):
        parameters_of("clustering", "blobs", {"order": "auto"})


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        (np.array([0, 1, 1]), np.array([0, 1, 2]), "1 of 3 differ"),
        (np.array([0, 1]), np.array([0.0, 1.0]), "int64 of shape (2,) -> float64"),
        (np.array([1.0, 1e3]), np.array([1.0 + 1e-5, 1e3]), "1 of 2 differ, the largest is 1e+03"),
        (np.array([np.nan, -np.inf]), np.array([1, np.inf]), "2 of 2 differ"),
        ("dense", "tiled", "'dense' -> 'tiled'"),
        (None, 1.0, "None -> 1.0"),
    ],
)
def test_differences_are_found(old, new, how):
    ((name, how_found),) = differences({"value_": old}, {"value_": new})
    assert name == "value_"
    assert how_found.startswith(how)
    assert not list(differences({"value_": old}, {"value_": old}))
    for one, other in (({"value_": old}, {}), ({}, {"value_": new})):
        assert [name for name, _ in differences(one, other)] == ["value_"]


def test_noise_is_no_difference():
    assert not list(differences({"value_": np.array([1.0, 1e3])}, {"value_": np.array([1.0 + 1e-8, 1e3])}))
