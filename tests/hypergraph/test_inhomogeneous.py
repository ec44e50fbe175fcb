"""Inhomogeneous cuts: one-vertex costs to pair weights, and the objectives of a partition."""

from __future__ import annotations

from itertools import combinations, permutations
from math import factorial

import numpy as np
import pytest

from biclique.exceptions import DataError, DegreeError, ParameterError
from biclique.hypergraph import (
    SPLITTINGS,
    SubsetSplitting,
    cost_graph,
    inhomogeneous_contraction,
    inhomogeneous_cut,
    inhomogeneous_kernel,
    inhomogeneous_kmeans_objective,
    inhomogeneous_normalized_cut,
    kernel_costs,
    pair_weights,
    subspace_costs,
)
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.kernels.named import make_kernel
from tests import oracles
from tests.calls import refusals


@pytest.mark.parametrize("s", [3, 4, 5, 7])
def test_single_vertex_cuts_give_the_costs_back(s):
    costs = np.random.default_rng(s).random(s)
    weights = pair_weights(costs)
    np.testing.assert_allclose(weights, weights.T)
    for v in range(s):
        assert oracles.one_vertex_cut(weights, v) == pytest.approx(costs[v])


def test_pair_weights_have_the_least_norm():
    """Among all symmetric pair weights with these single-vertex cuts, by least squares on the pairs."""
    s, costs = 5, np.random.default_rng(0).random(5)
    pairs = list(combinations(range(s), 2))
    incidence = np.array([[float(v in pair) for pair in pairs] for v in range(s)])
    least = np.linalg.lstsq(incidence, costs, rcond=None)[0]
    found = pair_weights(costs)
    np.testing.assert_allclose([found[p] for p in pairs], least, atol=1e-12)


def test_two_and_one_vertices():
    np.testing.assert_allclose(pair_weights([1.0, 3.0]), [[0, 2], [2, 0]])
    np.testing.assert_allclose(pair_weights([[1.0], [2.0]]), np.zeros((2, 1, 1)))


def test_cost_graph_sums_over_edges_and_clips_at_the_end():
    random = np.random.default_rng(1)
    edges = [[0, 1, 2], [1, 2, 3, 4], [0, 4], [3], [0, 1, 2]]
    weights = random.random(5) + 0.5
    costs = [random.random(len(e)) * [1 if v else 4 for v in range(len(e))] for e in edges]
    expected = np.zeros((5, 5))
    for edge, w, c in zip(edges, weights, costs, strict=True):
        found = pair_weights(c)
        for a, v in enumerate(edge):
            for b, u in enumerate(edge):
                expected[v, u] += w * found[a, b]
    assert expected.min() < 0 < expected.max()
    graph = cost_graph(Hypergraph.from_edges(edges, weights), np.concatenate(costs))
    np.testing.assert_allclose(graph.toarray(), np.maximum(expected, 0), atol=1e-12)


def test_batches_change_nothing(monkeypatch):
    random = np.random.default_rng(2)
    hypergraph = Hypergraph.from_edges([random.choice(30, 4, replace=False) for _ in range(50)], vertices=30)
    whole = cost_graph(hypergraph, np.sqrt).toarray()
    monkeypatch.setattr("biclique.hypergraph.inhomogeneous.BATCH_PAIRS", 100)
    np.testing.assert_allclose(cost_graph(hypergraph, np.sqrt).toarray(), whole, atol=1e-12)


def test_distances_to_spans():
    random = np.random.default_rng(0)
    X = random.standard_normal((12, 5))
    X[3] = X[4]  # a repeated point
    X[7] = (X[5] + X[6]) / 2  # three points on a line
    for s in (2, 3, 4, 5):
        tuples = np.array([random.choice(12, s, replace=False) for _ in range(40)] + [[3, 4, 0, 1, 2][:s]])
        expected = [[oracles.distance_to_span(X[e[v]], X[np.delete(e, v)]) ** 2 for v in range(s)] for e in tuples]
        np.testing.assert_allclose(-np.log(subspace_costs(X, 0.5)(tuples)), np.multiply(expected, 0.5), atol=1e-10)


def test_costs_by_a_kernel():
    X = np.random.default_rng(0).standard_normal((6, 3))
    tuples = np.array([[0, 2, 4, 5], [1, 2, 3, 4]])
    kernel = make_kernel("rbf", gamma=0.5)
    K = kernel.block(X, X)
    expected = [[sum(K[v, u] for u in e if u != v) for v in e] for e in tuples]
    np.testing.assert_allclose(kernel_costs(X, kernel)(tuples), expected)
    hypergraph = Hypergraph.from_edges(tuples, vertices=6)
    by_function = cost_graph(hypergraph, kernel_costs(X, kernel)).toarray()
    np.testing.assert_allclose(by_function, cost_graph(hypergraph, np.array(expected)).toarray())


@pytest.mark.parametrize("name", SPLITTINGS)
def test_the_papers_rewriting_on_cardinality_based_functions(name):
    """Cut(V) = Σ_{v∈V, u∉V} K_inh(v, u; V) once each edge is shared among its cut pairs; read literally it is counted
    |e ∩ V| |e ∖ V| times."""
    random = np.random.default_rng(4)
    hypergraph = Hypergraph.from_edges(
        [random.choice(8, random.integers(2, 6), replace=False) for _ in range(12)], random.random(12), vertices=8
    )
    inside = np.arange(8) < 3
    by_definition, literal = 0.0, 0.0
    for edge, w in zip(hypergraph.edges(), hypergraph.weights, strict=True):
        here = sum(1 for v in edge if v < 3)
        if 0 < here < len(edge):
            by_definition += w * SPLITTINGS[name](here, len(edge))
            literal += w * SPLITTINGS[name](here, len(edge)) * here * (len(edge) - here)
    assert inhomogeneous_cut(hypergraph, inside, name) == pytest.approx(by_definition)
    shared = inhomogeneous_contraction(hypergraph, inside, name, per_pair=True).matrix().toarray()
    assert inside @ shared @ ~inside == pytest.approx(by_definition)
    counted = inhomogeneous_contraction(hypergraph, inside, name).matrix().toarray()
    assert inside @ counted @ ~inside == pytest.approx(literal)


def test_contraction_over_ordered_tuples():
    """The paper's K_inh sums over ordered tuples: (m − 2)! times ours on the complete 4-uniform hypergraph."""
    n, m = 6, 4
    hypergraph = Hypergraph.from_edges(list(combinations(range(n), m)), vertices=n)
    inside = np.array([True, True, True, False, False, False])
    w = SPLITTINGS["smaller_side"]
    literal = np.zeros((n, n))
    for index in permutations(range(n), m):
        here = int(inside[list(index)].sum())
        literal[index[0], index[2]] += w(here, m) if 0 < here < m else 0.0
    ours = inhomogeneous_contraction(hypergraph, inside, "smaller_side").matrix().toarray()
    np.testing.assert_allclose(literal, factorial(m - 2) * ours)


@pytest.mark.parametrize("per_pair", [False, True])
def test_kmeans_objective_by_its_sums(per_pair):
    random = np.random.default_rng(4)
    hypergraph = Hypergraph.from_edges(random.integers(0, 7, (10, 4)), random.random(10), vertices=7)
    labels, weights = np.array([0, 0, 1, 1, 2, 2, 0]), random.random(7) + 0.5
    expected = 0.0
    for j in range(3):
        K = inhomogeneous_contraction(hypergraph, labels == j, "smaller_side", per_pair=per_pair).matrix().toarray()
        members = np.flatnonzero(labels == j)
        mass = weights[members].sum()
        expected += sum(weights[i] * K[i, i] for i in members)
        expected -= sum(weights[i] * weights[k] * K[i, k] for i in members for k in members) / mass
    found = inhomogeneous_kmeans_objective(hypergraph, labels, "smaller_side", weights, per_pair=per_pair)
    assert found == pytest.approx(expected)


def test_subset_functions_of_any_kind():
    """One vertex may cost more than another: the d^inh kind of cost, as a function of the subset."""
    price = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    hypergraph = Hypergraph.from_edges([[0, 1, 2], [2, 3, 4], [0, 4]], [1, 10, 100])
    splitting = SubsetSplitting(lambda inside, edge: min(price[list(inside)].sum(), 20.0))
    inside = np.array([True, False, False, True, True])
    assert inhomogeneous_kernel(hypergraph, inside, splitting).tolist() == [1.0, 200.0, 0.0]
    labels = [0, 1, 1, 0, 0]
    other = inhomogeneous_kernel(hypergraph, ~inside, splitting).sum()
    assert inhomogeneous_cut(hypergraph, labels, splitting) == pytest.approx((201.0 + other) / 2)
    degrees = np.array([1 + 100, 2, 4 + 40, 80, 160 + 1600])
    expected = 201 / degrees[inside].sum() + other / degrees[~inside].sum()
    assert inhomogeneous_normalized_cut(hypergraph, labels, splitting) == pytest.approx(expected)


@pytest.mark.parametrize("name", SPLITTINGS)
def test_repeated_vertices_are_cut_off_whole(name):
    hypergraph = Hypergraph.from_edges([[0, 0, 1, 2], [1, 2, 3], [3, 3, 3, 0]], [1, 2, 3])
    w = SPLITTINGS[name]
    degrees = [w(2, 4) + 3 * w(1, 4), w(1, 4) + 2 * w(1, 3), w(1, 4) + 2 * w(1, 3), 2 * w(1, 3) + 3 * w(3, 4)]
    cut_0 = w(2, 4) + 3 * w(1, 4)
    expected = cut_0 / degrees[0] + cut_0 / sum(degrees[1:])
    assert inhomogeneous_normalized_cut(hypergraph, [0, 1, 1, 1], name) == pytest.approx(expected)


EDGES = Hypergraph.from_edges([[0, 1, 2], [1, 2, 3]])
SHARES = Hypergraph.from_incidence([[0.5], [1]])
ISOLATED = Hypergraph.from_edges([[0, 1]], vertices=3)
NAN, ONE = SubsetSplitting(lambda a, b: np.nan), SubsetSplitting(lambda a, b: 1.0)
ALL = "all_or_nothing"


test_refused_with_a_reason = refusals(
    (lambda: cost_graph(EDGES, np.ones(5)), DataError, "one entry for every vertex"),
    (lambda: cost_graph(EDGES, np.full(6, np.nan)), DataError, "finite"),
    (lambda: cost_graph(EDGES, lambda tuples: np.ones(len(tuples))), DataError, "shape"),
    (lambda: cost_graph(EDGES, "abc"), DataError, "numbers"),
    (lambda: cost_graph(Hypergraph.from_edges([[0, 0, 1]]), np.ones(2)), DataError, "repeated"),
    (lambda: cost_graph(Hypergraph.from_edges([range(1001)]), np.ones(1001)), DataError, "at most 1000"),
    (lambda: pair_weights(3.0), DataError, "single number"),
    (lambda: inhomogeneous_cut(EDGES, [0, 1, 0, 1], "other"), ParameterError, "splitting must be one of"),
    (lambda: inhomogeneous_cut(EDGES, [0, 1, 0, 1], NAN), ParameterError, "finite"),
    (lambda: inhomogeneous_kernel(EDGES, [True], ALL), DataError, "mask of 4"),
    (lambda: inhomogeneous_kernel(SHARES, [1, 0], ONE), DataError, "whole numbers"),
    (lambda: inhomogeneous_contraction(EDGES, [2, 2, 0, 0], ALL, per_pair=True), DataError, "must be a mask"),
    (lambda: inhomogeneous_kmeans_objective(EDGES, [0, 1, 0, 1], ALL, np.zeros(4)), DataError, "positive in total"),
    (lambda: inhomogeneous_normalized_cut(ISOLATED, [0, 0, 1], ALL), DegreeError, "volume"),
)
