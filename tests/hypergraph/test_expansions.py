"""Expansions as operators, Laplacians and cuts: against loops, and the identities between them."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from biclique.exceptions import DataError, DegreeError, MemoryLimitError, ParameterError
from biclique.hypergraph import (
    EXPANSIONS,
    SPLITTINGS,
    ExpansionGram,
    cut,
    distortion,
    k_way_normalized_cut,
    laplacian,
    literal_incidence,
    literal_k_way_normalized_cut,
    normalized_cut,
    pair_weight,
)
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.multiway import contract, gram_tensor
from biclique.multiway import k_way_normalized_cut as cut_of_matrix
from tests import oracles
from tests.calls import peak_memory, refusals

COEFFICIENTS = {
    "star": lambda w, s: w / s,
    "clique": lambda w, s: w,
    "normalized_clique": lambda w, s: w / (s - 1) if s > 1 else 0.0,
}


def make(kind, seed=0, n=9, n_edges=14):
    """Edges with weights: uniform or not, with repeated vertices or not; plus the hypergraph."""
    random = np.random.default_rng(seed)
    edges = []
    for _ in range(n_edges):
        size = 4 if "uniform" in kind.split() else random.integers(1, 6)
        edges.append(random.choice(n, size, replace="repeats" in kind).tolist())
    weights = random.random(n_edges) + 0.1
    return edges, weights, Hypergraph.from_edges(edges, weights, vertices=n)


assert set(EXPANSIONS) == {*COEFFICIENTS, "contraction"}
UNIFORM = ["uniform", "uniform repeats"]
KINDS = [*UNIFORM, "mixed", "mixed repeats"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expansion", COEFFICIENTS)
def test_operator_equals_loops_over_pairs_of_places(kind, expansion):
    edges, weights, hypergraph = make(kind)
    A = oracles.expansion_matrix(edges, weights, 9, expansion)
    gram = ExpansionGram(hypergraph, expansion)
    V = np.random.default_rng(1).standard_normal((9, 3))
    np.testing.assert_allclose(gram.matmat(V), A @ V, atol=1e-12)
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(A), atol=1e-12)
    np.testing.assert_allclose(gram.degrees(), A.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(gram.matrix().toarray(), A, atol=1e-12)


def test_contraction_is_that_of_the_symmetric_tensor():
    """And over several sizes the sum; Proposition 2: A_g = (m − 2)! A_uc without repeats."""
    edges, weights, hypergraph = make("mixed repeats", n=6)
    total = np.zeros((6, 6))
    for m in range(2, 6):
        chosen = [e for e in range(len(edges)) if len(edges[e]) == m]
        tensor = oracles.symmetric_edge_tensor([edges[e] for e in chosen], weights[chosen], 6, m)
        total += contract(tensor, (0, 1))
    np.testing.assert_allclose(ExpansionGram(hypergraph, "contraction").matrix().toarray(), total, atol=1e-10)
    _, _, uniform = make("uniform")
    contraction, clique = (ExpansionGram(uniform, name).matrix().toarray() for name in ("contraction", "clique"))
    np.testing.assert_allclose(contraction, factorial(2) * clique, atol=1e-10)


@pytest.mark.parametrize("kind", UNIFORM)
def test_laplacians_of_a_uniform_hypergraph_are_multiples(kind):
    """L_uc = m L_s = (m − 1) L_nc."""
    _, _, hypergraph = make(kind)
    star, clique, normalized = (laplacian(hypergraph, name, kind="unnormalized") @ np.eye(9) for name in COEFFICIENTS)
    np.testing.assert_allclose(clique, 4 * star, atol=1e-12)
    np.testing.assert_allclose(clique, 3 * normalized, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expansion", COEFFICIENTS)
def test_cut_by_counting_is_the_quadratic_form(kind, expansion):
    edges, weights, hypergraph = make(kind)
    random = np.random.default_rng(2)
    A = oracles.expansion_matrix(edges, weights, 9, expansion)
    for _ in range(5):
        inside = random.random(9) < 0.5
        f = inside.astype(float)
        counted = oracles.hypergraph_cut(edges, weights, inside, COEFFICIENTS[expansion])
        assert cut(hypergraph, inside, expansion) == pytest.approx(counted)
        assert f @ (laplacian(hypergraph, expansion, kind="unnormalized") @ f) == pytest.approx(counted)
        assert f @ A @ (1 - f) == pytest.approx(counted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expansion", [*COEFFICIENTS, "contraction"])
def test_normalized_cuts_are_those_of_the_matrix(kind, expansion):
    _, _, hypergraph = make(kind)
    A = ExpansionGram(hypergraph, expansion).matrix().toarray()
    two = np.array([0, 0, 1, 1, 0, 1, 0, 1, 1])
    three = np.array([0, 1, 2] * 3)
    assert normalized_cut(hypergraph, two, expansion) == pytest.approx(oracles.k_way_cut(A, two))
    assert k_way_normalized_cut(hypergraph, three, expansion) == pytest.approx(oracles.k_way_cut(A, three))
    gram = ExpansionGram(hypergraph, expansion)
    assert k_way_normalized_cut(hypergraph, three, expansion) == pytest.approx(cut_of_matrix(gram, three))
    pairs = [[three == i, three == j] for i in range(3) for j in range(i)]
    assert cut(hypergraph, three, expansion) == pytest.approx(sum(a @ A @ b for a, b in pairs))


def test_literal_incidence_has_the_square_roots_of_counts():
    edges, _, hypergraph = make("uniform repeats", n=4)
    expected = [[edge.count(v) ** 0.5 for edge in edges] for v in range(4)]
    np.testing.assert_allclose(literal_incidence(hypergraph).toarray(), expected)


def test_the_papers_square_root_of_multiplicities_breaks_the_cut():
    edges, weights, hypergraph = make("uniform repeats", n=4)
    root = literal_incidence(hypergraph).toarray()
    L = np.diag(hypergraph.degrees) - root @ np.diag(weights) @ root.T / 4
    inside = np.arange(4) < 2
    counted = oracles.hypergraph_cut(edges, weights, inside, COEFFICIENTS["star"])
    assert abs(inside @ L @ inside - counted) > 0.2 * counted


def test_the_literal_k_way_cut_divides_by_the_rest_too():
    edges, weights, hypergraph = make("mixed")
    labels = np.arange(9) % 3
    expected = oracles.k_way_cut(oracles.expansion_matrix(edges, weights, 9, "clique"), labels, literal=True)
    assert literal_k_way_normalized_cut(hypergraph, labels, "clique") == pytest.approx(expected)


def test_star_matrix_of_the_biclique_tensor():
    """diag(d) + h K^(m) + (h − 1) A_g up to scale: Algorithm 1 cuts K^(m), which is only one part of the star."""
    K = np.exp(-np.square(np.subtract.outer(np.arange(4.0), np.arange(4.0))))
    tensor = gram_tensor(K, 4)
    n, m, h = 4, 4, 2
    star, d = np.zeros((n, n)), np.zeros(n)
    for index in np.ndindex(*tensor.shape):
        for a in index:
            d[a] += tensor[index]
            for b in index:
                star[a, b] += tensor[index] / m
    same_half, other_half = contract(tensor, (0, 1)), contract(tensor, (0, 2))
    np.testing.assert_allclose(star, (np.diag(d) + m * (h * other_half + (h - 1) * same_half)) / m, rtol=1e-12)


@pytest.mark.parametrize("kind", ["unnormalized", "symmetric", "random_walk"])
def test_laplacian_definitions(kind):
    edges, weights, _ = make("mixed")
    hypergraph = Hypergraph.from_edges(edges, weights, vertices=10)  # vertex 9 is isolated
    A = oracles.expansion_matrix(edges, weights, 10, "star")
    d = A.sum(axis=1)
    inverse = np.divide(1, d, out=np.zeros(10), where=d > 0)
    L = np.diag(d) - A
    expected = {
        "unnormalized": L,
        "symmetric": np.sqrt(inverse)[:, None] * L * np.sqrt(inverse),
        "random_walk": inverse[:, None] * L,
    }[kind]
    operator = laplacian(hypergraph, kind=kind)
    np.testing.assert_allclose(operator @ np.eye(10), expected, atol=1e-12)
    np.testing.assert_allclose(operator @ np.arange(10.0), expected @ np.arange(10.0), atol=1e-12)
    np.testing.assert_allclose(operator.T @ np.eye(10), expected.T, atol=1e-12)


def test_products_are_the_same_bits_for_any_number_of_threads():
    random = np.random.default_rng(0)
    hypergraph = Hypergraph.from_edges(random.integers(0, 20_000, (30_000, 4)), vertices=20_000)
    V = random.standard_normal((20_000, 3))
    one, two = (ExpansionGram(hypergraph, "clique", n_jobs=jobs).matmat(V) for jobs in (1, 2))
    assert (one == two).all()


def test_cuts_of_many_parts_stay_sparse():
    random = np.random.default_rng(0)
    hypergraph = Hypergraph.from_edges(random.integers(0, 20_000, (20_000, 3)), vertices=20_000)
    peak, total = peak_memory(lambda: cut(hypergraph, np.arange(20_000), "clique"))
    counts = hypergraph.incidence.data
    assert total == pytest.approx((9 * 20_000 - (counts**2).sum()) / 2)
    assert peak < 50e6


def test_new_vertices_join_given_edges():
    _, _, hypergraph = make("mixed repeats")
    for expansion in ("star", "clique"):
        gram = ExpansionGram(hypergraph, expansion)
        np.testing.assert_allclose(gram.cross(hypergraph.incidence).diagonal(), gram.diagonal(), atol=1e-12)


@pytest.mark.parametrize("name", SPLITTINGS)
@pytest.mark.parametrize("size", [2, 5, 8])
def test_pair_weight_and_distortion_of_a_splitting_function(name, size):
    w = SPLITTINGS[name]
    p = max(w(j, size) / (j * (size - j)) for j in range(1, size))
    assert pair_weight(name, size) == pytest.approx(p)
    charged = [p * j * (size - j) / w(j, size) for j in range(1, size)]
    assert min(charged) >= 1 - 1e-12
    assert distortion(name, size) == pytest.approx(max(charged))


def test_named_splittings_are_known_expansions():
    _, _, hypergraph = make("mixed")
    V = np.eye(9)
    all_or_nothing = ExpansionGram(hypergraph, SPLITTINGS["all_or_nothing"]).matmat(V)
    np.testing.assert_allclose(all_or_nothing, ExpansionGram(hypergraph, "normalized_clique").matmat(V), atol=1e-12)
    labels = np.arange(9) % 2
    assert cut(hypergraph, labels, SPLITTINGS["product_of_sides"]) == pytest.approx(cut(hypergraph, labels, "star"))


MIXED = make("mixed")[2]
LONG = Hypergraph.from_edges([range(200)])
ISOLATED = Hypergraph.from_edges([[0, 1]], vertices=3)
HUGE = Hypergraph.from_edges([[0, 1], [1, 2]], [1.7e308, 1.7e308])


test_refused_with_a_reason = refusals(
    (lambda: ExpansionGram(MIXED, "stars"), ParameterError, "expansion must be one of 'star'"),
    (lambda: laplacian(MIXED, kind="other"), ParameterError, "kind must be one of"),
    (lambda: normalized_cut(MIXED, np.arange(9) % 3), DataError, "two parts"),
    (lambda: literal_k_way_normalized_cut(MIXED, np.zeros(9)), DataError, "at least two parts"),
    (lambda: literal_incidence([[0, 1]]), DataError, "a Hypergraph is needed"),
    (lambda: cut(MIXED, [0, 1]), DataError, "one entry for each vertex"),
    (lambda: cut(MIXED, [None, *range(8)]), DataError, "of one kind"),
    (lambda: cut(MIXED.incidence, np.arange(9)), DataError, "from_incidence"),
    (lambda: k_way_normalized_cut(ISOLATED, [0, 0, 1]), DegreeError, "no positive volume"),
    (lambda: ExpansionGram(Hypergraph.from_incidence([[0.5], [1]]), "clique"), DataError, "whole numbers"),
    (lambda: ExpansionGram(LONG, "contraction"), ParameterError, "too large for an edge of 200"),
    (lambda: pair_weight(lambda j, s: j, 4), ParameterError, "same from both sides"),
    (lambda: pair_weight(lambda j, s: -1.0, 4), ParameterError, "not negative"),
    (lambda: pair_weight(lambda j: 1.0, 4), ParameterError, "must return a number"),
    (lambda: pair_weight("smaller_side", 2.5), ParameterError, "whole number from 1"),
    (lambda: pair_weight([], 3), ParameterError, "splitting must be one of"),
    (lambda: laplacian(HUGE), DataError, "overflow"),
    (lambda: laplacian(Hypergraph.from_edges([[0, 1], [1, 2]], [1, -3])), DataError, "negative degree"),
)


def test_a_matrix_beyond_memory_is_refused(monkeypatch):
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: 2**20)
    with pytest.raises(MemoryLimitError, match="needs no matrix"):
        ExpansionGram(Hypergraph.from_edges([range(2000)] * 3), "clique").matrix()
