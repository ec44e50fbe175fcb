"""Several numbers of clusters from one embedding."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from biclique.exceptions import DataError, ParameterError
from biclique.selection import layers
from tests.calls import refusals

CENTRES = np.array([[x + a, y + b] for x in (0, 100) for y in (0, 100) for a in (0, 10) for b in (0, 10)])


@pytest.fixture(scope="module")
def squares():
    X, y = make_blobs(640, centers=CENTRES, random_state=0)
    X.setflags(write=False)
    return X, y


@pytest.mark.parametrize("nested", [False, True])
def test_every_layer_finds_its_clusters(squares, nested):
    X, y = squares
    found = layers(X, [4, 16, 2], nested=nested)
    assert found.shape == (640, 3)
    assert adjusted_rand_score(y // 4, found[:, 0]) == 1
    assert adjusted_rand_score(y, found[:, 1]) == 1
    assert len(np.unique(found[:, 2])) == 2


def test_nested_layers_are_nested():
    X = np.random.default_rng(0).uniform(size=(300, 2))
    found = layers(X, [3, 9, 25], nested=True)
    assert [len(np.unique(column)) for column in found.T] == [3, 9, 25]
    for coarse, fine in ((0, 1), (1, 2), (0, 2)):
        for label in range(found[:, fine].max() + 1):
            assert len(np.unique(found[found[:, fine] == label, coarse])) == 1
    np.testing.assert_array_equal(found[:, 2], layers(X, [25])[:, 0])


def test_rows_of_weight_zero_have_no_label(squares):
    weights = np.ones(100)
    weights[7] = 0
    found = layers(squares[0][:100], [2], sample_weight=weights)
    assert found[7, 0] == -1
    assert found.max() == 1


test_wrong_arguments_are_refused = refusals(
    (lambda: layers(CENTRES, []), ParameterError, "numbers"),
    (lambda: layers(CENTRES, [0]), ParameterError, "numbers"),
    (lambda: layers(CENTRES, [2], nested="yes"), ParameterError, "nested"),
    (lambda: layers(CENTRES, [200]), DataError, "fewer than"),
)
