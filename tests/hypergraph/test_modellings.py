from itertools import combinations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.hypergraph.contraction import modelling_gram
from biclique.hypergraph.modellings import (
    POINT_MODELLINGS,
    GeneralizedDot,
    MaxKernel,
    Modelling,
    VertexDistance,
    make_modelling,
    modelling_values,
)
from biclique.hypergraph.triples import TRIPLES, smallest_eigenvalues
from biclique.kernels import RBF, Laplacian, Polynomial, bandwidth
from tests.conftest import frozen
from tests.hypergraph import modelling_oracles as oracles

RNG = np.random.default_rng(0)

PLAIN = frozen(RNG.normal(size=(9, 3)))
DEGENERATE = RNG.normal(size=(10, 3))
DEGENERATE[4] = DEGENERATE[1]  # two equal points
DEGENERATE[5] = DEGENERATE[1]  # and a third
DEGENERATE[6] = 2 * DEGENERATE[2] - DEGENERATE[3]  # three on a line
DEGENERATE[8] = 0.0
DEGENERATE = frozen(DEGENERATE)


def rbf(x, y):
    return np.exp(-0.4 * np.sum((x - y) ** 2))


# Modelling, its options, those of the loop, and the tolerance where points on a line come from lengths of sides.
CASES = {
    "max": ("max", {"gamma": 0.4}, {"kernel": rbf}, 1e-13),
    "affine_eigenvalue": ("affine_eigenvalue", {"gamma": 0.7}, {"gamma": 0.7}, 1e-13),
    "affine_distance": ("affine_distance", {"gamma": 0.7}, {"gamma": 0.7}, 1e-6),
    "affine_distance to the mean": (
        "affine_distance",
        {"gamma": 0.7, "dimension": 0},
        {"gamma": 0.7, "dimension": 0},
        1e-6,
    ),
    "vertex_distance": ("vertex_distance", {"gamma": 0.7}, {"gamma": 0.7}, 1e-6),
    "vertex_distance squared": (
        "vertex_distance",
        {"gamma": 0.7, "squared": True},
        {"gamma": 0.7, "squared": True},
        1e-12,
    ),
    "dot": ("dot", {}, {}, 1e-12),
    "biclique": ("biclique", {"gamma": 0.4}, {"kernel": rbf}, 1e-13),
}
SYMMETRIC = [case for case in CASES if case != "biclique"]


def test_every_modelling_is_in_the_cases_and_says_what_it_is():
    assert {case[0] for case in CASES.values()} == set(POINT_MODELLINGS)
    assert set(TRIPLES) == set(POINT_MODELLINGS.values()) - {GeneralizedDot, POINT_MODELLINGS["biclique"]}
    assert all(kind.formula and kind.__doc__ and kind.name == name for name, kind in POINT_MODELLINGS.items())


@pytest.mark.parametrize("X", [PLAIN, DEGENERATE], ids=["plain", "degenerate"])
@pytest.mark.parametrize("m", [2, 3, 4, 5])
@pytest.mark.parametrize("case", CASES)
def test_values_are_the_definition(case, m, X):
    name, options, loop, _ = CASES[case]
    if name == "biclique" and m % 2:
        with pytest.raises(ParameterError, match="even"):
            modelling_values(X, [list(range(m))], name, **options)
        return
    tuples = np.array(list(combinations(range(len(X)), m)))[:60]
    expected = [oracles.weight(name, X[index], **loop) for index in tuples]
    np.testing.assert_allclose(modelling_values(X, tuples, name, **options), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("X", [PLAIN, DEGENERATE], ids=["plain", "degenerate"])
@pytest.mark.parametrize("case", SYMMETRIC)
def test_triples_are_the_definition(case, X):
    name, options, loop, tolerance = CASES[case]
    expected = oracles.contraction(len(X), 3, lambda index: oracles.weight(name, X[list(index)], **loop))
    gram = modelling_gram(X, name, **options)
    np.testing.assert_allclose(gram, expected, rtol=0, atol=(tolerance if X is DEGENERATE else 1e-12) * len(X))


@pytest.mark.parametrize("dimensions", [1, 2, 12])
@pytest.mark.parametrize("case", SYMMETRIC)
def test_triples_are_the_values_on_more_points(case, dimensions):
    name, options, _, tolerance = CASES[case]
    X = np.random.default_rng(1).normal(size=(41, dimensions))
    triples = np.array(list(combinations(range(41), 3)))
    weights = modelling_values(frozen(X), triples, name, **options)
    gram = modelling_gram(frozen(X), name, **options)
    np.testing.assert_allclose(
        gram, oracles.clique_sum(41, triples, weights), atol=41 * max(tolerance, 1e-12), rtol=1e-9
    )
    assert np.array_equal(gram, gram.T)
    assert not gram.diagonal().any()
    if name != "dot":
        assert gram.min() >= 0


@pytest.mark.parametrize("case", SYMMETRIC)
def test_order_2_is_the_weight_of_pairs(case):
    name, options, loop, _ = CASES[case]
    expected = oracles.contraction(9, 2, lambda index: oracles.weight(name, PLAIN[list(index)], **loop))
    np.testing.assert_allclose(modelling_gram(PLAIN, name, order=2, **options), expected, atol=1e-12)


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_the_dot_product_at_every_order(m, repeats):
    X = PLAIN[:6]
    expected = oracles.contraction(6, m, lambda index: oracles.weight("dot", X[list(index)]), repeats)
    gram = modelling_gram(X, "dot", order=m, repeats=repeats)
    np.testing.assert_allclose(gram, expected, atol=1e-10)
    assert np.array_equal(gram, gram.T)


@pytest.mark.parametrize("case", SYMMETRIC)
def test_the_same_bits_for_any_number_of_threads(case):
    name, options, _, _ = CASES[case]
    X = frozen(np.random.default_rng(2).normal(size=(120, 5)))
    triples = np.array(list(combinations(range(40), 3)))
    one, values = modelling_gram(X, name, n_jobs=1, **options), modelling_values(X, triples, name, n_jobs=1, **options)
    for jobs in (2, 3):
        with threadpool_limits(jobs):
            assert np.array_equal(one, modelling_gram(X, name, n_jobs=jobs, **options))
            assert np.array_equal(values, modelling_values(X, triples, name, n_jobs=jobs, **options))


def test_smallest_eigenvalues_keep_their_digits():
    vectors = []
    for closeness in (1.0, 1e-3, 1e-6, 1e-9, 0.0):
        direction = RNG.normal(size=(400, 1, 4))
        vectors.append(direction + closeness * RNG.normal(size=(400, 3, 4)))  # nearly parallel: two small eigenvalues
    vectors.append(np.stack([np.eye(3, 4), np.zeros((3, 4)), np.diag([1.0, 1.0, 5.0, 0])[:3]]))  # p = 0, and ties
    V = np.concatenate(vectors)
    A = V @ V.transpose(0, 2, 1)
    values = np.linalg.eigvalsh(A)
    buffers = np.empty((16, len(A)))
    found = smallest_eigenvalues((A[:, 0, 0], A[:, 1, 1], A[:, 2, 2]), (A[:, 0, 1], A[:, 0, 2], A[:, 1, 2]), buffers)
    assert (np.abs(found - values[:, 0]) <= 1e-14 * values[:, 2]).all()


def test_a_span_of_equal_points_is_a_point():
    X = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    values = modelling_values(X, [[0, 1, 2], [0, 2, 3], [0, 1, 2]], "vertex_distance", gamma=0.1)
    np.testing.assert_allclose(values, np.exp([-0.5, 0.0, -0.5]), atol=1e-15)
    assert modelling_gram(X[:3], "vertex_distance", gamma=0.1)[0, 1] == pytest.approx(np.exp(-0.5), abs=1e-15)


def test_nearly_equal_points_keep_heights_within_their_sides():
    X = np.concatenate([RNG.normal(size=(20, 3)), RNG.normal(size=(1, 3)) + 1e-7 * RNG.normal(size=(20, 3))])
    triples = np.array(list(combinations(range(40), 3)))
    weights = modelling_values(X, triples, "vertex_distance", gamma=1.0)
    gram = modelling_gram(X, "vertex_distance", gamma=1.0)
    np.testing.assert_allclose(gram, oracles.clique_sum(40, triples, weights), rtol=1e-5)


@pytest.mark.parametrize("case", SYMMETRIC)
def test_units_and_place_do_not_matter(case):
    name, options, _, _ = CASES[case]
    if name in ("dot", "affine_eigenvalue"):
        return  # these see the origin
    X = np.random.default_rng(3).normal(size=(30, 3))
    expected = modelling_gram(X, name, **options)
    squares = name == "max" or options.get("squared")
    small = {**options, "gamma": options["gamma"] * (1e12 if squares else 1e6)}
    np.testing.assert_allclose(modelling_gram(X * 1e-6, name, **small), expected, rtol=1e-6)
    np.testing.assert_allclose(modelling_gram(X + 100, name, **options), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("affinity", "kernel"),
    [("laplacian", Laplacian(0.3)), ("polynomial", Polynomial(0.3, 1.0, 3)), (RBF(0.3), RBF(0.3)), (rbf, None)],
    ids=["laplacian", "polynomial", "object", "function"],
)
def test_max_takes_any_kernel(affinity, kernel):
    def of_two(x, y):
        return rbf(x, y) if kernel is None else kernel.block(x[None], y[None])[0, 0]

    expected = oracles.contraction(9, 3, lambda index: oracles.weight("max", PLAIN[list(index)], kernel=of_two))
    np.testing.assert_allclose(modelling_gram(PLAIN, "max", affinity=affinity, gamma=0.3), expected)
    index = np.array(list(combinations(range(9), 4)))
    np.testing.assert_allclose(
        modelling_values(PLAIN, index, "max", affinity=affinity, gamma=0.3),
        [oracles.weight("max", PLAIN[i], kernel=of_two) for i in index],
    )


def test_automatic_gamma():
    X = frozen(np.random.default_rng(4).normal(size=(60, 3)))
    assert make_modelling("max", X, 3).gamma == pytest.approx(
        bandwidth("auto", "rbf", np.unique(X, axis=0), np.ones(60), 0)
    )
    for name in ("affine_eigenvalue", "affine_distance", "vertex_distance"):
        chosen = make_modelling(name, X, 3, random_state=0)
        assert chosen == make_modelling(name, X, 3, random_state=0)
        triples = np.array(list(combinations(range(60), 3)))
        # 3 / median of the exponent: the median weight of all triples is e⁻³, up to the sample.
        assert np.median(modelling_values(X, triples, chosen)) == pytest.approx(np.exp(-3), rel=0.25)
        far = make_modelling(name, X + 1e5, 3, random_state=0)
        assert far.gamma == pytest.approx(chosen.gamma, rel=1e-3) or name == "affine_eigenvalue"
    with pytest.raises(DataError, match="no scale"):
        make_modelling("affine_eigenvalue", X, 4)


def test_a_modelling_of_ones_own():
    class Ones(Modelling):
        def weights(self, X, tuples):  # noqa: ARG002
            return np.ones(len(tuples))

    assert modelling_values(PLAIN, [[0, 1, 2, 3]], Ones()).tolist() == [1.0]
    with pytest.raises(ParameterError, match="sample_hyperedges"):
        modelling_gram(PLAIN, Ones())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: modelling_gram(PLAIN, "max", order=4), ParameterError, "sample_hyperedges"),
        (lambda: modelling_gram(PLAIN, "biclique", order=4), ParameterError, "biclique_gram"),
        (lambda: modelling_gram(PLAIN[:2], "max"), DataError, "2 rows"),
        (lambda: modelling_gram(PLAIN[:3], "dot", order=4), DataError, "3 rows"),
        (lambda: modelling_gram(PLAIN, "maximum"), ParameterError, "must be one of 'biclique', 'max'"),
        (lambda: modelling_gram(PLAIN, "dot", gamma=1.0), ParameterError, "no option 'gamma'.*repeats"),
        (lambda: modelling_gram(PLAIN, MaxKernel(), gamma=1.0), ParameterError, "in the object"),
        (lambda: modelling_gram(PLAIN, "max", gamma=-1.0), ParameterError, "positive number"),
        (lambda: modelling_gram(PLAIN, "vertex_distance", gamma="median"), ParameterError, "'auto'"),
        (lambda: modelling_gram(PLAIN, "max", affinity="rbff"), ParameterError, "affinity must be"),
        (lambda: modelling_gram(PLAIN, "max", affinity="chi2"), DataError, "non-negative"),
        (lambda: modelling_gram(PLAIN, "affine_distance", dimension=2), ParameterError, "order − 2"),
        (lambda: modelling_gram(PLAIN, "max", order=1), ParameterError, "order must be"),
        (lambda: modelling_gram(PLAIN, "max", memory_limit=100), MemoryLimitError, "fewer rows"),
        (lambda: modelling_gram(PLAIN[0], "max"), DataError, "table"),
        (lambda: modelling_gram(np.where(PLAIN > 1, np.nan, PLAIN), "max"), DataError, "finite"),
        (lambda: modelling_values(PLAIN, [[0, 1, 1]], "max"), DataError, "distinct"),
        (lambda: modelling_values(PLAIN, [[0, 1, 9]], "max"), DataError, "0 to 8"),
        (lambda: modelling_values(PLAIN, [0, 1], "max"), DataError, r"shape \(N, m\)"),
        (lambda: VertexDistance().weights(PLAIN, np.array([[0, 1, 2]])), ParameterError, "make_modelling"),
    ],
)
def test_errors_say_what_to_do(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_few_points():
    X = PLAIN[:3]
    w = modelling_values(X, [[0, 1, 2]], "affine_distance", gamma=1.0)[0]
    np.testing.assert_allclose(modelling_gram(X, "affine_distance", gamma=1.0), w * (1 - np.eye(3)), atol=1e-12)
    assert modelling_gram(np.zeros((4, 2)), "vertex_distance", gamma=1.0).tolist() == (2 * (1 - np.eye(4))).tolist()
    assert modelling_values(X, np.empty((0, 3), dtype=int), "max", gamma=1.0).shape == (0,)
