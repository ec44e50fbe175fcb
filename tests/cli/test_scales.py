import numpy as np
import pytest
from sklearn.preprocessing import RobustScaler, StandardScaler

from biclique.cli.common import column_scale, constant_note


@pytest.mark.parametrize("kind", ["standard", "robust"])
def test_columns_are_scaled_as_scikit_learn_does(kind):
    X = np.random.default_rng(0).normal(size=(100, 4)) * [1.0, 1e-3, 0.0, 5.0] + [0.0, 1.0, 0.1, 1e6]
    X[:, 2] = 0.1 + 1e-17 * np.arange(100)  # constant but for rounding
    offset, scale, told = column_scale(kind, X.mean(axis=0), X.std(axis=0), 100, 1000, lambda size: X[:size])
    expected = (StandardScaler() if kind == "standard" else RobustScaler()).fit_transform(X)
    np.testing.assert_allclose((X - offset) / scale, expected, atol=1e-12)
    assert not told


def test_a_sample_is_said():
    X = np.arange(20.0)[:, None]
    offset, _, told = column_scale("robust", X.mean(axis=0), X.std(axis=0), 20, 5, lambda size: X[:size])
    assert offset == [2.0]
    assert told == ["--scale robust took medians and quartiles from a sample of 5 of 20 rows."]


def test_constant_columns_are_named():
    assert constant_note(["a", "b"]) == ["constant columns tell nothing apart: 'a', 'b'."]
    assert constant_note([]) == []
