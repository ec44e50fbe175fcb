from functools import partial
from itertools import combinations
from math import comb, factorial

import numpy as np
import pytest

from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.gram.sparse import SparseGram
from biclique.hypergraph.points.contraction import modelling_gram
from biclique.hypergraph.points.modellings import (
    draw_sets,
    make_modelling,
    modelling_values,
)
from biclique.hypergraph.points.sampling import EDGE_COPIES, _cut, iterative_sample, sample_hyperedges
from biclique.kernels import RBF
from biclique.multiway.objectives import k_way_normalized_cut
from biclique.scores import clustering_error
from tests.calls import peak_memory, refuses
from tests.conftest import frozen
from tests.hypergraph.points import modelling_oracles as oracles
from tests.hypergraph.points.modelling_oracles import rbf
from tests.oracles import expansion_matrix

X = frozen(np.random.default_rng(0).normal(size=(9, 3)))


def flats(dimension, seed, per_flat=60, n_flats=3, noise=0.02):
    """Noisy pieces of random lines (dimension 1) or planes (2) in space."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n_flats):
        axes = np.linalg.qr(rng.normal(size=(3, dimension)))[0]
        inside = rng.uniform(-1, 1, size=(per_flat, dimension)) @ axes.T
        rows.append(inside + noise * rng.normal(size=(per_flat, 3)) + rng.uniform(-0.3, 0.3, size=3))
    return frozen(np.concatenate(rows)), np.repeat(np.arange(n_flats), per_flat)


def clique(hypergraph):
    return expansion_matrix(members(hypergraph), hypergraph.weights, hypergraph.n_vertices, "clique")


def members(hypergraph):
    return np.array(list(hypergraph.edges()))


@pytest.mark.parametrize("size", [3, 11, 20])
def test_sets_without_replacement_are_alike_at_every_share(size):
    random = np.random.RandomState(1)
    drawn = [draw_sets(6, 3, size, random) for _ in range(3000)]
    assert all(len(np.unique(np.sort(rows, axis=1), axis=0)) == size for rows in drawn)
    counts = np.unique(np.sort(np.concatenate(drawn), axis=1), axis=0, return_counts=True)[1]
    expected = 3000 * size / 20
    assert len(counts) == 20
    assert np.abs(counts - expected).max() <= 4.5 * np.sqrt(expected * (1 - size / 20))


def test_memory_grows_with_the_sample_and_is_foretold(monkeypatch):
    many = frozen(np.random.default_rng(1).normal(size=(200, 2)))
    for order, n_edges in ((4, 10_000), (3, 700_000)):  # of 64,684,950 and of 1,313,400 sets
        share = comb(200, order) if 2 * n_edges > comb(200, order) else 0
        foretold = 8 * (n_edges * (EDGE_COPIES * order + 6) + share)
        draw = partial(sample_hyperedges, many, n_edges, order=order, modelling="dot", random_state=0)
        assert peak_memory(draw)[0] < foretold + 2**22
        with monkeypatch.context() as patch:
            patch.setattr("biclique.runtime.memory.free_memory", lambda free=foretold - 1: free)
            with pytest.raises(MemoryLimitError):
                draw()


def test_no_set_twice_unless_asked():
    graph = sample_hyperedges(X, comb(9, 4), order=4, gamma=0.4, random_state=0)
    assert len(np.unique(members(graph), axis=0)) == graph.n_edges == comb(9, 4)
    refuses(ParameterError, r"126 sets of 4 among 9 points.*replace=True", sample_hyperedges, X, 127, order=4)
    assert sample_hyperedges(X, 127, order=4, replace=True, random_state=0).n_edges == 127
    many = frozen(np.random.default_rng(1).normal(size=(3000, 2)))  # at order 10 too many sets to number
    few = sample_hyperedges(many[:70], comb(70, 68), order=68, modelling="dot")  # though C(69, 35) is beyond 64 bits
    assert len(np.unique(members(few), axis=0)) == comb(70, 68)
    for order in (5, 10):
        graph = sample_hyperedges(many, 50, order=order, modelling="dot", random_state=0)
        assert graph.uniform_order == order
        assert not graph.has_repeats
        assert members(graph).mean() == pytest.approx(1500, abs=200)


@pytest.mark.parametrize("method", ["uniform", "iterative"])
def test_weights_are_the_definition(method):
    clusters = {"n_clusters": 2} if method == "iterative" else {}
    drawn = {"order": 3, "modelling": "max", "method": method, "random_state": 1, **clusters}
    graph = sample_hyperedges(X, 60, **drawn, affinity=RBF(0.4))
    assert graph.n_vertices == 9
    assert graph.uniform_order == 3
    expected = [oracles.weight("max", X[edge], kernel=rbf) for edge in members(graph)]
    np.testing.assert_allclose(graph.weights, expected, atol=1e-12)


def test_biclique_weights_are_those_of_some_split_into_halves():
    graph = sample_hyperedges(X, 100, order=4, gamma=0.4, random_state=1)
    splits = np.array([[0, 1, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2]])
    seen = set()
    for edge, found in zip(members(graph), graph.weights, strict=True):
        of_splits = [oracles.weight("biclique", X[edge[split]], kernel=rbf) for split in splits]
        closest = int(np.argmin(np.abs(np.array(of_splits) - found)))
        assert of_splits[closest] == pytest.approx(found, abs=1e-12)
        seen.add(closest)
    assert seen == {0, 1, 2}


def test_the_same_seed_gives_the_same_edges():
    for method, clusters in (("uniform", None), ("iterative", 2)):
        options = {"order": 4, "method": method, "n_clusters": clusters, "modelling": "vertex_distance"}
        seeds = ((3, 1), (3, 2), (4, 1))
        one, same, other = (sample_hyperedges(X, 40, random_state=s, n_jobs=jobs, **options) for s, jobs in seeds)
        assert np.array_equal(members(one), members(same))
        assert np.array_equal(one.weights, same.weights)
        assert not np.array_equal(members(one), members(other))


@pytest.mark.parametrize(("modelling", "options"), [("max", {"gamma": 1.0}), ("vertex_distance", {"gamma": 1.0})])
@pytest.mark.parametrize("replace", [True, False])
def test_samples_approach_the_contraction(modelling, options, replace):
    points = frozen(np.random.default_rng(2).normal(size=(30, 2)))
    exact = modelling_gram(points, modelling, **options)
    sets = np.array(list(combinations(range(30), 3)))
    squares = 6 * (modelling_values(points, sets, modelling, **options) ** 2).sum()
    for n_edges in (200, 1000, 3200):
        drawn = {"order": 3, "modelling": modelling, "replace": replace, "random_state": 0}
        graph = sample_hyperedges(points, n_edges, **drawn, **options)
        estimate = clique(graph) * len(sets) * factorial(1) / n_edges
        # The variance of a mean of n_edges draws, summed over entries; without replacement less of it is left.
        left = 1.0 if replace else (len(sets) - n_edges) / (len(sets) - 1)
        expected = np.sqrt((len(sets) * squares - np.sum(exact**2)) / n_edges * left)
        assert 0.8 * expected < np.linalg.norm(estimate - exact) < 1.2 * expected
    assert np.linalg.norm(1.3 * estimate - exact) > 1.2 * expected  # the bound can fail


@pytest.mark.parametrize(("dimension", "order"), [(1, 3), (2, 4)], ids=["lines", "planes"])
def test_iterative_sampling_finds_flats_that_uniform_sampling_does_not(dimension, order):
    errors = {"iterative": [], "uniform": [], "any cut": []}
    for seed in range(3):
        points, truth = flats(dimension, seed)
        n_draws = 30
        options = {"order": order, "modelling": "affine_distance", "random_state": seed}
        found = iterative_sample(points, 3, n_draws=n_draws, **options)
        n_edges = n_draws * (len(points) - order + 1)
        uniform = sample_hyperedges(points, n_edges, **options)
        assert uniform.n_edges == found.hypergraph.n_edges == n_edges
        errors["iterative"].append(clustering_error(truth, found.labels))
        for name, graph in (("uniform", uniform), ("any cut", found.hypergraph)):
            labels = _cut(SparseGram(clique(graph)), 3, np.random.RandomState(0))
            errors[name].append(clustering_error(truth, labels))
    means = {name: np.mean(values) for name, values in errors.items()}
    assert means["iterative"] < 0.12
    assert means["iterative"] < 0.6 * means["uniform"]
    assert means["any cut"] < 0.6 * means["uniform"]  # the sample itself is better, not only the labels


def test_the_result_is_the_best_round(monkeypatch):
    points, _ = flats(1, 0, per_flat=20)
    rounds = []

    def recorded(gram, *rest):
        rounds.append((gram, _cut(gram, *rest)))
        return rounds[-1][1]

    monkeypatch.setattr("biclique.hypergraph.points.sampling._cut", recorded)
    result = iterative_sample(points, 3, n_draws=12, order=3, modelling="vertex_distance", max_rounds=4, random_state=5)
    cuts = [k_way_normalized_cut(gram, labels) for gram, labels in rounds]
    best = int(np.argmin(cuts))
    np.testing.assert_array_equal(result.cuts, cuts)
    assert best not in (0, len(rounds) - 1)  # else the first or the last would do
    np.testing.assert_array_equal(result.labels, rounds[best][1])
    np.testing.assert_allclose(result.hypergraph.weights.sum(), rounds[best][0].matmat(np.ones((60, 1))).sum() / 4)
    assert len(result.cuts) == result.n_rounds <= 4
    assert result.labels.shape == (60,)
    assert result.hypergraph.n_edges == 12 * 58
    chosen = make_modelling("vertex_distance", points, 3, random_state=np.random.RandomState(5))
    np.testing.assert_allclose(
        result.hypergraph.weights, modelling_values(points, members(result.hypergraph), chosen), atol=1e-12
    )
    one = iterative_sample(points, 1, n_draws=2, order=3, modelling="vertex_distance", random_state=0)
    assert one.converged
    assert not one.labels.any()


def test_clusters_too_small_to_draw_from():
    points = np.concatenate([np.random.default_rng(0).normal(size=(20, 3)), [[50.0, 0, 0], [0, 50.0, 0]]])
    result = iterative_sample(points, 4, n_draws=8, order=5, modelling="affine_distance", gamma=0.05, random_state=0)
    assert result.hypergraph.uniform_order == 5
    assert result.hypergraph.n_edges == 8 * 18
    assert not result.hypergraph.has_repeats


ITERATIVE = {"order": 4, "method": "iterative", "n_clusters": 2}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"order": 3}, ParameterError, "even"),
        ({"method": "random"}, ParameterError, "'uniform', 'iterative'"),
        ({"method": "iterative"}, ParameterError, "needs n_clusters"),
        ({**ITERATIVE, "n_clusters": 10}, DataError, "at most 9 clusters"),
        ({**ITERATIVE, "n_edges": 5}, ParameterError, "at least n − order"),
        ({"order": 10, "modelling": "dot", "repeats": True}, DataError, "needs 10 distinct ones"),
        ({"n_edges": 0}, ParameterError, "n_edges must be"),
        ({**ITERATIVE, "order": 3, "modelling": "vertex_distance", "gamma": 1e6}, DataError, "lower gamma"),
        ({**ITERATIVE, "order": 3, "modelling": "dot"}, DataError, "shift X so that the weights are positive"),
        ({"n_clusters": 2}, ParameterError, "n_clusters=2 is for method='iterative' alone"),
        ({**ITERATIVE, "replace": True}, ParameterError, "replace=True is for"),
        ({"replace": 1}, ParameterError, "replace must be True or False"),
        ({"order": "4"}, ParameterError, "order must be"),
        ({**ITERATIVE, "n_jobs": "x"}, ParameterError, "n_jobs must be"),
        ({"random_state": -1}, ParameterError, "random_state must be"),
        ({"n_edges": 10**15, "replace": True}, MemoryLimitError, "lower n_edges"),
        ({**ITERATIVE, "n_edges": 10**15}, MemoryLimitError, "lower n_draws"),
    ],
)
def test_errors_say_what_to_do(options, error, message):
    refuses(error, message, sample_hyperedges, X, **{"order": 4, "n_edges": 20, "random_state": 0, **options})
