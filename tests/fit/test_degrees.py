"""Degrees of rows, back from their embedding: δ(x) = Σ_j w_j κ(x, x_j)."""

import numpy as np
import pytest

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DegreeError
from biclique.kernels import RBF
from tests import oracles


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    return np.concatenate([random.normal(size=(40, 2)), random.normal(size=(30, 2)) + 7, [[3.5, 3.5]]])


def fitted(rows, **parameters):
    weights = np.where(np.arange(len(rows)) % 3 == 0, 2.0, 1.0)
    parameters = {"affinity": "rbf", "random_state": 0, **parameters}
    return BicliqueSpectralClustering(2, **parameters).fit(rows, sample_weight=weights), weights


WAYS = {
    "dense": {},
    "tiled": {"gram": "tiled"},
    "landmarks": {"gram": "nystroem", "rank": 71},
    "neighborhoods": {"affinity": "neighborhoods"},
}


@pytest.mark.parametrize("order", [2, 2.5, 1000])
@pytest.mark.parametrize("way", WAYS)
def test_degrees_are_sums_of_similarities(rows, order, way):
    kernel = {"gamma": 0.2, "precision": "float64"} if way != "neighborhoods" else {}
    model, weights = fitted(rows, order=order, **kernel, **WAYS[way])
    for some in (rows, rows[:5] + 0.1):
        found = model._fitted.degrees(model._fitted.embed(some, 1))
        if way == "neighborhoods":
            landmarks = model._fitted.points.map.landmarks
            expected = oracles.neighborhood_kernel(some, landmarks, model.n_neighbors_, rows) @ weights
        else:
            expected = RBF(0.2).block(some, rows) @ weights
        np.testing.assert_allclose(found, expected, rtol=1e-4 if way == "landmarks" else 1e-9)


@pytest.mark.parametrize("order", [2, 2.5])
def test_degrees_of_a_graph(rows, order):
    model, weights = fitted(rows, affinity="nearest_neighbors", n_neighbors=5, order=order)
    fit = model._fitted
    place = fit.known.find(rows)
    of_vertices = np.zeros(len(rows))
    of_vertices[place] = weights
    np.testing.assert_allclose(fit.degrees(model.embedding_), (fit.points.trained.K @ of_vertices)[place], rtol=1e-9)


def test_order_infinity_has_no_degrees(rows):
    model, _ = fitted(rows, order=np.inf)
    assert np.isnan(model._fitted.degrees(model.embedding_)).all()


def test_no_order_has_positive_degrees(rows):
    centred = rows - rows.mean(axis=0)
    with pytest.raises(DegreeError, match=r"^no order from 2 to 4 can be taken: \d+ of 71 rows .* at order 4"):
        fitted(centred, affinity="cosine")
    with pytest.raises(DegreeError, match=r"^\d+ of 71 rows .* at order 3"):
        fitted(centred, affinity="cosine", order=3)


def test_orders_without_positive_degrees_are_passed_over():
    X = np.random.default_rng(0).normal(size=(200, 3)) + [2, 0, 0]
    model = BicliqueSpectralClustering(2, affinity="linear", random_state=0).fit(X)
    assert model.order_reason_.startswith("order 2: degrees that are not positive; ")
    assert model.order_ > 2
