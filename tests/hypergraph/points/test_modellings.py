from fractions import Fraction
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from biclique.exceptions import DataError, MemoryLimitError, ParameterError
from biclique.hypergraph.points.contraction import TRIPLES, modelling_gram, smallest_eigenvalues
from biclique.hypergraph.points.modellings import (
    POINT_MODELLINGS,
    GeneralizedDot,
    MaxKernel,
    Modelling,
    VertexDistance,
    make_modelling,
    modelling_values,
)
from biclique.kernels import RBF, Laplacian, Polynomial
from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.named import make_kernel
from tests.calls import refusals, refuses
from tests.conftest import frozen
from tests.hypergraph.points import modelling_oracles as oracles
from tests.hypergraph.points.modelling_oracles import rbf
from tests.oracles import expansion_matrix

RNG = np.random.default_rng(0)

PLAIN = frozen(RNG.normal(size=(9, 3)))
DEGENERATE = RNG.normal(size=(10, 3))
DEGENERATE[4] = DEGENERATE[1]  # two equal points
DEGENERATE[5] = DEGENERATE[1]  # and a third
DEGENERATE[6] = 2 * DEGENERATE[2] - DEGENERATE[3]  # three on a line
DEGENERATE[8] = 0.0
DEGENERATE = frozen(DEGENERATE)


# Modelling, its options, and the tolerance of a weight.
CASES = {
    "max": ("max", {"gamma": 0.4}, 1e-13),
    "affine_eigenvalue": ("affine_eigenvalue", {"gamma": 0.7}, 1e-13),
    "affine_distance": ("affine_distance", {"gamma": 0.7}, 1e-12),
    "affine_distance to the mean": ("affine_distance", {"gamma": 0.7, "dimension": 0}, 1e-12),
    "vertex_distance": ("vertex_distance", {"gamma": 0.7}, 1e-12),
    "vertex_distance squared": ("vertex_distance", {"gamma": 0.7, "squared": True}, 1e-12),
    "dot": ("dot", {}, 1e-12),
    "biclique": ("biclique", {"gamma": 0.4}, 1e-13),
}
SYMMETRIC = [case for case in CASES if case != "biclique"]


def weigher(case, X):
    """The definition of a case: w of the rows with some numbers."""
    name, options, _ = CASES[case]
    options = {"kernel": rbf} if name in ("max", "biclique") else options
    return lambda index: oracles.weight(name, X[list(index)], **options)


def test_every_modelling_is_in_the_cases_and_says_what_it_is():
    assert {case[0] for case in CASES.values()} == set(POINT_MODELLINGS)
    assert set(TRIPLES) == set(POINT_MODELLINGS.values()) - {GeneralizedDot, POINT_MODELLINGS["biclique"]}
    assert all(kind.__doc__ and kind.name == name for name, kind in POINT_MODELLINGS.items())


@pytest.mark.parametrize("X", [PLAIN, DEGENERATE], ids=["plain", "degenerate"])
@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("case", CASES)
def test_values_are_the_definition(case, m, X):
    name, options, _ = CASES[case]
    if name == "biclique" and m % 2:
        return  # refused
    tuples = np.array(list(combinations(range(len(X)), m)))[:60]
    expected = list(map(weigher(case, X), tuples))
    np.testing.assert_allclose(modelling_values(X, tuples, name, **options), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("X", [PLAIN, DEGENERATE], ids=["plain", "degenerate"])
@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("case", SYMMETRIC)
def test_triples_are_the_definition(case, order, X):
    name, options, tolerance = CASES[case]
    expected = oracles.contraction(len(X), order, weigher(case, X))
    gram = modelling_gram(X, name, order=order, **options)
    np.testing.assert_allclose(gram, expected, rtol=0, atol=(tolerance if X is DEGENERATE else 1e-12) * len(X))


@pytest.mark.parametrize("dimensions", [1, 2, 12])
@pytest.mark.parametrize("case", SYMMETRIC)
def test_triples_are_the_values_on_more_points(case, dimensions):
    name, options, tolerance = CASES[case]
    X = np.random.default_rng(1).normal(size=(41, dimensions))
    triples = np.array(list(combinations(range(41), 3)))
    weights = modelling_values(frozen(X), triples, name, **options)
    gram = modelling_gram(frozen(X), name, **options)
    expected = expansion_matrix(triples, weights, 41, "clique")
    np.testing.assert_allclose(gram, expected, atol=41 * max(tolerance, 1e-12), rtol=1e-9)
    assert np.array_equal(gram, gram.T)
    assert not gram.diagonal().any()
    if name != "dot":
        assert gram.min() >= 0


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_dot_product_of_tuples_with_repeats(m):
    X = PLAIN[:6]
    expected = oracles.contraction(6, m, lambda index: oracles.weight("dot", X[list(index)]), repeats=True)
    gram = modelling_gram(X, "dot", order=m, repeats=True)
    np.testing.assert_allclose(gram, expected, atol=1e-10)
    assert np.array_equal(gram, gram.T)


@pytest.mark.parametrize("case", SYMMETRIC)
def test_the_same_bits_for_any_number_of_threads(case):
    name, options, _ = CASES[case]
    X = frozen(np.random.default_rng(2).normal(size=(120, 5)))
    triples = np.array(list(combinations(range(40), 3)))
    one, values = modelling_gram(X, name, n_jobs=1, **options), modelling_values(X, triples, name, n_jobs=1, **options)
    with threadpool_limits(3):
        assert np.array_equal(one, modelling_gram(X, name, n_jobs=3, **options))
        assert np.array_equal(values, modelling_values(X, triples, name, n_jobs=3, **options))


def test_smallest_eigenvalues_keep_their_digits():
    vectors = []
    for closeness in (1.0, 1e-3, 1e-6, 1e-9, 0.0):
        direction = RNG.normal(size=(400, 1, 4))
        vectors.append(direction + closeness * RNG.normal(size=(400, 3, 4)))  # nearly parallel: two small eigenvalues
    vectors.append(np.stack([np.eye(3, 4), np.zeros((3, 4)), np.diag([1.0, 1.0, 5.0, 0])[:3]]))  # p = 0, and ties
    V = np.concatenate(vectors)
    A = V @ V.transpose(0, 2, 1)
    values = np.linalg.eigvalsh(A)
    found = smallest_eigenvalues((A[:, 0, 0], A[:, 1, 1], A[:, 2, 2]), (A[:, 0, 1], A[:, 0, 2], A[:, 1, 2]))
    assert (np.abs(found - values[:, 0]) <= 1e-14 * values[:, 2]).all()


def nearly_a_line(n, seed, noise=1e-8):
    rng = np.random.RandomState(seed)
    return frozen(np.outer(rng.randn(n), rng.randn(5)) + noise * rng.randn(n, 5))


@pytest.mark.parametrize("others", [0, 35], ids=["all flat", "few flat"])
@pytest.mark.parametrize(
    ("name", "options"), [("vertex_distance", {}), ("vertex_distance", {"squared": True}), ("affine_distance", {})]
)
def test_nearly_flat_triples_keep_their_digits(name, options, others):
    X = nearly_a_line(12, 0)
    beside = np.random.default_rng(1).normal(size=(others, 5))  # nowhere near a line
    triples = np.array(list(combinations(range(12), 3)))
    kind = make_modelling(name, X, 3, gamma=1.0, **options)
    exponents = kind.exponent(X[triples])
    for triple, exponent in zip(triples[::4], exponents[::4], strict=True):
        # With such a γ no triple but the flat one has a weight.
        gram = modelling_gram(np.concatenate([X[triple], beside]), name, gamma=1 / exponent, **options)
        assert -np.log(gram[0, 1]) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("name", ["vertex_distance", "affine_distance"])
def test_gram_of_nearly_equal_points_is_the_sum_of_the_values(name):
    """Half of the points are one point and 1e-7 of noise."""
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(20, 3)), random.normal(size=3) + 1e-7 * random.normal(size=(20, 3))])
    triples = np.array(list(combinations(range(len(X)), 3)))
    chosen = make_modelling(name, X, 3, random_state=0)
    expected = expansion_matrix(triples, modelling_values(X, triples, chosen), len(X), "clique")
    np.testing.assert_allclose(modelling_gram(X, chosen), expected, rtol=1e-5)


def test_equilateral_triples_have_one_of_the_best_lines():
    rng = np.random.default_rng(0)
    for _ in range(50):
        axes = np.linalg.qr(rng.normal(size=(4, 4)))[0][:2]
        angles = 2 * np.pi * np.arange(3) / 3 + rng.uniform(0, 7)
        X = np.column_stack([np.cos(angles), np.sin(angles)]) @ axes + rng.normal(size=4)
        exponent = -np.log(modelling_gram(X, "affine_distance", gamma=1.0)[0, 1])
        # μ₂ = 3/2 at radius 1, and z² is from 1/2 to 2/3 whichever line is taken.
        assert 2 / 3 * np.sqrt(3 / 4) - 1e-7 <= exponent <= 2 / 3 + 1e-7
        assert -np.log(modelling_values(X, [[0, 1, 2]], "affine_distance", gamma=1.0)[0]) <= 2 / 3 + 1e-7


def exact_dot(X, m):
    """The contraction in rational numbers, and that of magnitudes, which bounds what rounding may do."""
    exact = np.array([[Fraction(x) for x in row] for row in X.tolist()])
    return [
        oracles.contraction(len(X), m, lambda index, rows=rows: float(rows[list(index)].prod(axis=0).sum()))
        for rows in (exact, abs(exact))
    ]


@pytest.mark.parametrize("large", [1.0, 1e8])
@pytest.mark.parametrize("m", [3, 4, 5])
def test_the_dot_product_beside_a_large_point(m, large):
    for signs in (True, False):
        X = np.random.default_rng(5).normal(size=(7, 2))
        X[2] *= large
        X = X if signs else np.abs(X)
        exact, magnitudes = exact_dot(X, m)
        error = np.abs(modelling_gram(frozen(X), "dot", order=m) - exact)
        assert (error <= 1e-14 * magnitudes).all()


def test_eigenvalues_far_from_the_origin():
    near = np.random.default_rng(7).normal(size=(30, 8))
    for order in (2, 3, 4):
        X = near + 1e6
        chosen = make_modelling("affine_eigenvalue", X, order, random_state=0)  # nothing here is flat
        tuples = np.array(list(combinations(range(30), order)))[:200]
        # Far away λ_min tends to that of the centred points beside the direction of the offset.
        centred = X[tuples] - X[tuples].mean(axis=1, keepdims=True)
        centred -= centred.mean(axis=2, keepdims=True)
        limit = np.linalg.svd(centred, compute_uv=False)[:, order - 2] ** 2
        np.testing.assert_allclose(chosen.exponent(X[tuples]), limit, rtol=1e-4)


@pytest.mark.parametrize("name", ["max", "affine_eigenvalue", "affine_distance", "vertex_distance"])
@pytest.mark.parametrize("magnitude", [1e-119, 1e119])
def test_large_and_small_magnitudes(name, magnitude):
    expected = modelling_gram(PLAIN, name, random_state=0)
    np.testing.assert_allclose(modelling_gram(PLAIN * magnitude, name, random_state=0), expected, rtol=1e-9)
    assert np.isfinite(modelling_gram(PLAIN * magnitude, name, gamma=1e300)).all()


@pytest.mark.parametrize("case", SYMMETRIC)
def test_units_and_place_do_not_matter(case):
    name, options, _ = CASES[case]
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
    expected = [oracles.weight("max", PLAIN[i], kernel=of_two) for i in index]
    np.testing.assert_allclose(modelling_values(PLAIN, index, "max", affinity=affinity, gamma=0.3), expected)


def test_automatic_gamma():
    X = frozen(np.random.default_rng(4).normal(size=(60, 3)))
    assert make_modelling("max", X, 3).gamma == pytest.approx(
        bandwidth("auto", make_kernel("rbf", gamma=None), np.unique(X, axis=0), np.ones(60), 0)
    )
    for name in ("affine_eigenvalue", "affine_distance", "vertex_distance"):
        chosen = make_modelling(name, X, 3, random_state=0)
        assert chosen == make_modelling(name, X, 3, random_state=0)
        triples = np.array(list(combinations(range(60), 3)))
        # 3 / median of the exponent: the median weight of all triples is e⁻³, up to the sample.
        assert np.median(modelling_values(X, triples, chosen)) == pytest.approx(np.exp(-3), rel=0.25)
        far = make_modelling(name, X + 1e5, 3, random_state=0)
        assert far.gamma == pytest.approx(chosen.gamma, rel=1e-3) or name == "affine_eigenvalue"
    refuses(DataError, "no scale", make_modelling, "affine_eigenvalue", X, 4)


def test_a_modelling_of_ones_own():
    class Ones(Modelling):
        def weights(self, X, tuples):  # noqa: ARG002
            return np.ones(len(tuples))

    assert modelling_values(PLAIN, [[0, 1, 2, 3]], Ones()).tolist() == [1.0]
    refuses(ParameterError, "sample_hyperedges", modelling_gram, PLAIN, Ones())


OUT_OF_RANGE = [PLAIN * magnitude for magnitude in (1e-200, 1e-121, 1e121, 1e200)]
DEFINED = ("max", "affine_eigenvalue", "affine_distance", "vertex_distance", "dot")
TRIPLE = [[0, 1, 2]]
CLOSE = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) * 1e-156, [[1.0, 1.0]]])
NOT_FINITE = "weights that are not finite: rescale X"
test_errors_say_what_to_do = refusals(
    *((partial(modelling_gram, X, name), DataError, "rescale X") for X, name in product(OUT_OF_RANGE, DEFINED)),
    *(
        (partial(modelling_values, X, TRIPLE, name), DataError, "rescale X")
        for X, name in product(OUT_OF_RANGE, DEFINED)
    ),
    *((partial(modelling_gram, CLOSE, name), DataError, "finds no scale") for name in ("max", "vertex_distance")),
    (lambda: modelling_gram(PLAIN * 1e110, "dot"), DataError, NOT_FINITE),
    (lambda: modelling_values(PLAIN * 1e110, TRIPLE, "dot"), DataError, NOT_FINITE),
    (lambda: modelling_gram(PLAIN, "max", affinity=lambda x, y: np.nan), DataError, NOT_FINITE),
    (lambda: modelling_gram(PLAIN, "max", order=4), ParameterError, "sample_hyperedges"),
    (lambda: modelling_gram(PLAIN, "biclique", order=4), ParameterError, "biclique_gram"),
    (lambda: modelling_gram(PLAIN[:2], "max"), DataError, "2 rows"),
    (lambda: modelling_gram(PLAIN, "maximum"), ParameterError, "must be one of 'biclique', 'max'"),
    (lambda: modelling_gram(PLAIN, "dot", gamma=1.0), ParameterError, "no option 'gamma'.*repeats"),
    (lambda: modelling_gram(PLAIN, MaxKernel(), gamma=1.0), ParameterError, "in the object"),
    (lambda: modelling_gram(PLAIN, "max", gamma=-1.0), ParameterError, "positive number"),
    (lambda: modelling_gram(PLAIN, "vertex_distance", gamma="median"), ParameterError, "'auto'"),
    (lambda: modelling_gram(PLAIN, "max", affinity="rbff"), ParameterError, "affinity must be"),
    (lambda: modelling_gram(PLAIN, "max", affinity="chi2"), DataError, "non-negative"),
    (lambda: modelling_gram(PLAIN, "affine_distance", dimension=2), ParameterError, "order − 2"),
    (lambda: modelling_gram(PLAIN, "max", order=1), ParameterError, "order must be"),
    (lambda: modelling_gram(np.where(PLAIN > 1, np.nan, PLAIN), "max"), DataError, "finite"),
    (lambda: modelling_values(PLAIN, [[0, 1, 1]], "max"), DataError, "distinct"),
    (lambda: modelling_values(PLAIN, [[0, 1, 9]], "max"), DataError, "0 to 8"),
    (lambda: modelling_values(PLAIN, [0, 1], "max"), DataError, r"shape \(N, m\)"),
    (lambda: modelling_values(PLAIN, [[0, 1], [2]], "max"), DataError, r"shape \(N, m\)"),
    (lambda: modelling_gram([[1.0, 2.0], [3.0]], "max"), DataError, "rows of one length"),
    (lambda: modelling_gram(PLAIN, "max", n_jobs=0), ParameterError, "n_jobs must be None or -1"),
    (lambda: modelling_values(PLAIN, [[0, 1]], "max", n_jobs=1.5), ParameterError, r"n_jobs must be.*1\.5"),
    (lambda: modelling_gram(PLAIN, "max", degree="a"), ParameterError, "degree must be a finite number, got 'a'"),
    (lambda: modelling_gram(PLAIN, "max", affinity=3), ParameterError, "affinity must be .* a function"),
    (lambda: modelling_gram(PLAIN, "max", random_state=-1), ParameterError, "random_state must be from 0"),
    (lambda: modelling_gram(PLAIN, "vertex_distance", squared=2), ParameterError, "squared must be True or False"),
    (lambda: modelling_gram(PLAIN, "dot", repeats="no"), ParameterError, "repeats must be True or False"),
    (lambda: modelling_gram(np.ones((210, 1)), "dot", order=200), ParameterError, "at most 172 .*got 200"),
    (lambda: VertexDistance().weights(PLAIN, np.array([[0, 1, 2]])), ParameterError, "make_modelling"),
)


def test_more_than_the_memory_is_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr("biclique.runtime.memory.free_memory", lambda: 10**3)
    message = r"modelling_gram of 9 rows needs .* use fewer rows, or sample_hyper"
    for name, order in (("max", 3), ("dot", 9)):
        refuses(MemoryLimitError, message, modelling_gram, PLAIN, name, order=order)


def test_few_points():
    X = PLAIN[:3]
    w = modelling_values(X, [[0, 1, 2]], "affine_distance", gamma=1.0)[0]
    np.testing.assert_allclose(modelling_gram(X, "affine_distance", gamma=1.0), w * (1 - np.eye(3)), atol=1e-12)
    assert modelling_gram(np.zeros((4, 2)), "vertex_distance", gamma=1.0).tolist() == (2 * (1 - np.eye(4))).tolist()
    assert modelling_values(X, np.empty((0, 3), dtype=int), "max", gamma=1.0).shape == (0,)
