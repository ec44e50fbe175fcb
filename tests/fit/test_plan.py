"""A plan takes every decision of a fit once, explains it, and needs neither a full pass nor a device."""

import sys
import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import sparse

import biclique.fit.plan as planning
from biclique import (
    BicliqueKernelKMeans,
    BicliqueSpectralClustering,
    BicliqueSpectralEmbedding,
    Hypergraph,
    HypergraphSpectralClustering,
)
from biclique.exceptions import BicliqueError, BicliqueWarning, LongFitWarning
from biclique.kernels import RBF


def model(estimator=BicliqueSpectralClustering, **parameters):
    return estimator(**{"n_clusters": 4, "random_state": 0, "memory_limit": "1GB", **parameters})


WAYS = {
    "default": {},
    "centres, order 4": {"rank": 50, "order": 4},
    "neighborhoods and kernel k-means": {"assign_labels": "kernel_kmeans"},
    "rbf": {"affinity": "rbf"},
    "dense, order 4": {"affinity": "rbf", "gram": "dense", "order": 4},
    "tiled": {"affinity": "rbf", "gram": "tiled"},
    "tiled, float64": {"affinity": "rbf", "gram": "tiled", "precision": "float64", "eigen_tol": 1e-5},
    "a solver of SciPy": {"affinity": "rbf", "eigen_solver": "lobpcg", "n_components": 6},
    "laplacian": {"affinity": "laplacian"},
    "linear": {"affinity": "linear"},
    "a gamma": {"affinity": "rbf", "gamma": 0.2},
    "symmetric": {"affinity": "rbf", "modelling": "symmetric"},
    "kernel k-means": {"affinity": "rbf", "assign_labels": "kernel_kmeans"},
    "landmarks": {"affinity": "rbf", "gram": "nystroem", "rank": 50},
    "landmarks, rank auto": {"affinity": "rbf", "gram": "nystroem"},
    "features": {"affinity": "rbf", "gram": "features", "rank": 64},
    "exact features": {"gram": "features", "affinity": "polynomial", "degree": 2},
    "landmarks as an operator": {"affinity": "rbf", "gram": "nystroem", "rank": 50, "modelling": "symmetric"},
    "graph": {"affinity": "nearest_neighbors"},
}
LATER = {
    # What only a fit can tell.
    "order", "order_reason", "rank", "error", "seconds", "changes", "settings", "kernel",
}  # fmt: skip


def compare(plan, final, but=frozenset()):
    for field in fields(plan):
        if field.name not in LATER | but:
            assert getattr(plan, field.name) == getattr(final, field.name), field.name
    assert type(plan.kernel) is type(final.kernel)
    assert plan.kernel is None or vars(plan.kernel) == vars(final.kernel)
    assert plan.settings == final.settings


def fitted(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BicliqueWarning)
        return model.fit(X)


# What a plan decides is what a fit does


@pytest.mark.parametrize("way", WAYS)
def test_a_fit_does_what_its_plan_says(blobs, way):
    asked = model(**WAYS[way])
    plan, final = asked.plan(blobs[0]), fitted(asked, blobs[0]).plan_
    # The bytes of a rank that is not known yet are those of a usual one.
    compare(
        plan, final, {planning.FACTORED_WAY: {"bytes"}, planning.NEIGHBORHOODS: {"n_neighbors"}}.get(plan.way, set())
    )
    assert plan.order is None
    assert final.order in final.orders
    assert plan.seconds > 0
    assert plan.bytes > 0


def test_of_other_estimators_and_sources(blobs):
    X, _ = blobs
    K = RBF(0.1).block(X, X)
    given = model(affinity="precomputed")
    compare(given.plan(K), fitted(given, K).plan_)
    given = model(affinity="precomputed")
    compare(given.plan(sparse.csr_array(K)), fitted(given, sparse.csr_array(K)).plan_)
    for estimator in (BicliqueKernelKMeans, BicliqueSpectralEmbedding):
        parameters = {"random_state": 0, "memory_limit": "1GB"}
        but = {"n_neighbors"} if estimator is BicliqueSpectralEmbedding else set()
        compare(estimator(**parameters).plan(X), fitted(estimator(**parameters), X).plan_, but)
    hypergraph = Hypergraph.from_edges([[0, 1, 2], [1, 2, 3], [4, 5, 6], [5, 6, 7], [3, 4]])
    edges = HypergraphSpectralClustering(2, random_state=0, memory_limit="1GB")
    compare(edges.plan(hypergraph), fitted(edges, hypergraph).plan_)


def test_a_plan_leaves_no_trace(blobs):
    asked = model(affinity="rbf")
    first = asked.plan(blobs[0])
    assert not hasattr(asked, "n_features_in_")
    labels = fitted(asked, blobs[0]).labels_
    again = asked.plan(blobs[0][:, :3])
    assert again.kernel.gamma != first.kernel.gamma
    assert (asked.n_features_in_, asked.plan_.rows) == (5, 300)
    assert np.array_equal(asked.labels_, labels)


def test_the_cost_is_that_of_the_plan(blobs):
    for parameters in WAYS.values():
        plan, cost = model(**parameters).plan(blobs[0]), model(**parameters).estimate_cost(blobs[0])
        assert replace(cost, seconds=0.0) == replace(plan.cost, seconds=0.0)
        assert (cost.gram, cost.rows, cost.bytes) == (plan.gram, plan.rows, plan.bytes)


# What a plan needs


def test_no_device_is_needed(blobs, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    plan = model(affinity="rbf", device="cuda").plan(blobs[0])
    assert (plan.gram, plan.device, plan.precision) == ("cuda", "cuda", "float32")
    assert plan.device_bytes > 0
    assert plan.seconds > 0
    assert "on cuda" in str(plan)
    factored = model(affinity="rbf", device="cuda:1", gram="nystroem", rank=50).plan(blobs[0])
    assert (factored.way, factored.device) == (planning.FACTORED_WAY, "cuda:1")
    assert factored.device_bytes > 0
    default = model(device="cuda").plan(blobs[0])
    assert (default.way, default.device) == (planning.NEIGHBORHOODS, "cuda")
    assert default.seconds > 0


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"affinity": "rbf", "gram": "tiled"},
        {"affinity": "rbf", "gram": "nystroem", "rank": 64},
        {"affinity": "nearest_neighbors"},
    ],
    ids=str,
)
def test_few_rows_are_looked_at(monkeypatch, parameters):
    X = np.random.default_rng(0).normal(size=(80_000, 2))
    seen = []
    digests = planning.distinct_rows.__globals__["digests"]

    def count_rows(rows, short=False):
        seen.append(rows.shape[0])
        return digests(rows, short)

    monkeypatch.setitem(planning.distinct_rows.__globals__, "digests", count_rows)
    plan = model(**parameters).plan(X)
    assert plan.rows == 80_000
    assert max(seen, default=0) <= planning.LOOKED_AT == 65_536
    few = model(**parameters).plan(np.repeat(X[:100], 700, axis=0))
    exact = parameters and "rank" not in parameters
    assert few.rows == (100 if exact else 70_000)  # a factored K takes rows as they are


# What a plan refuses


REFUSED = [
    {"n_clusters": 301},
    {"rank": 3},
    {"gram": "dense"},
    {"gram": "nystroem"},
    {"modelling": "symmetric"},
    {"affinity": "rbf", "n_clusters": 301},
    {"affinity": "rbf", "gram": "dense", "memory_limit": "300KB"},
    {"affinity": "rbf", "gram": "tiled", "memory_limit": "300KB"},
    {"affinity": "rbf", "gram": "nystroem", "memory_limit": "300KB"},
    {"affinity": "nearest_neighbors", "memory_limit": "300KB"},
    {"affinity": "nearest_neighbors", "n_neighbors": 301},
    {"affinity": "rbf", "gram": "nystroem", "rank": 301},
    {"gram": "features", "affinity": "chi2"},
    {"affinity": "rbf", "gram": "tiled", "precision": "float32", "gamma": 1e9},
    {"precision": "fast"},
    {"device": "cpu", "affinity": "rbf", "gram": "dense"},
    {"device": "cpu", "affinity": "rbf", "modelling": "symmetric"},
    {"device": "cpu", "affinity": "chi2"},
    {"device": "cpu", "assign_labels": "kernel_kmeans"},
    {"affinity": "precomputed"},
    {"affinity": lambda x, y: float(x[0])},
    {"order": 1.5},
    {"affinity": "rbf", "modelling": "symmetric", "order": 2.5},
]


def refusal(call):
    with pytest.raises(BicliqueError) as caught:
        call()
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("parameters", REFUSED, ids=" ".join)
def test_a_fit_and_its_plan_are_refused_alike(blobs, parameters):
    X, _ = blobs
    asked = model(**parameters)
    assert refusal(lambda: asked.plan(X)) == refusal(lambda: asked.fit(X)) == refusal(lambda: asked.estimate_cost(X))


# What a plan says


@pytest.mark.parametrize("way", WAYS)
def test_printed_it_explains_the_fit(blobs, way):
    asked = model(**WAYS[way])
    plan = asked.plan(blobs[0])
    for told, order in ((str(plan), plan.rule), (str(fitted(asked, blobs[0]).plan_), asked.order_reason_)):
        assert "300 rows, " in told
        assert f"gram={plan.gram!r}: " in told
        assert order in told
        assert "memory: " in told
        assert "limit 1 GiB" in told
        assert "solver: " in told
    assert plan.gram_reason in str(plan)
    assert "about" in str(plan)


def test_rules_of_the_order(blobs):
    X, _ = blobs
    assert model(order=8).plan(X).rule == "as asked for"
    for affinity in ("neighborhoods", "nearest_neighbors"):
        assert model(affinity=affinity).plan(X).rule == "2"
    assert model(affinity="rbf").plan(X).rule.startswith("the least of 2, ")
    assert "a kernel of your own" in str(model(affinity=RBF(0.2)).plan(X))


def test_a_long_exact_fit_is_said_before_it_begins():
    X = np.random.default_rng(0).normal(size=(120_000, 16)).astype(np.float32)
    with pytest.warns(LongFitWarning, match=r"an exact fit of 120000 rows takes some .* affinity='neighborhoods'"):
        BicliqueSpectralClustering(3, affinity="rbf", gamma=0.1, order=2).plan(X)
