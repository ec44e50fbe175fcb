import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from scipy.sparse.linalg import ArpackNoConvergence, lobpcg

from biclique.runtime.threads import single_threaded_blas
from biclique.spectral import solver
from biclique.spectral.alternatives import scipy_eigenpairs
from biclique.spectral.solver import DIRECT_BELOW, dense_eigenpairs, top_eigenpairs


class Known:
    """A symmetric operator with a known spectrum: diag(values) turned by a Householder reflection."""

    like = np.empty(0)

    def __init__(self, values, seed=0):
        self.values = np.asarray(values, dtype=float)
        h = np.random.default_rng(seed).normal(size=len(values))
        self.h = h / np.linalg.norm(h)
        self.passes = 0

    @property
    def shape(self):
        return (len(self.values),) * 2

    def _reflect(self, V):
        return V - 2 * np.outer(self.h, self.h @ V)

    def matmat(self, V):
        self.passes += 1
        return self._reflect(self.values[:, None] * self._reflect(V))

    def vector(self, i):
        return self._reflect(np.eye(len(self.values))[:, [i]])[:, 0]


N = 1000
SPECTRA = {
    "gap": np.concatenate([[0.99, 0.95, 0.9, 0.8], np.linspace(0.3, 0, N - 4)]),
    "no gap": np.linspace(1, 0, N) ** 4,
    "multiple": np.concatenate([[1.0] * 6, np.linspace(0.5, -0.5, N - 6)]),
    "low rank": np.concatenate([[1.0, 0.5], np.zeros(N - 2)]),
    "all equal": np.ones(N),
    "zero": np.zeros(N),
    "indefinite": np.concatenate([[0.6, 0.5, 0.4, 0.3], np.linspace(0.1, -2.0, N - 4)]),
    "tiny": 1e-9 * np.concatenate([[0.99, 0.95, 0.9, 0.8], np.linspace(0.3, 0, N - 4)]),
}


@pytest.fixture(autouse=True)
def one_thread():
    """As every fit has it: to enter it takes milliseconds."""
    with single_threaded_blas():
        yield


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("k", [1, 4, 9])
def test_always_k_pairs_descending_orthonormal_with_true_residuals(name, k):
    operator = Known(SPECTRA[name])
    result = top_eigenpairs(operator, k, tol=1e-6, max_iter=300, random_state=0)
    assert result.values.shape == result.residuals.shape == (k,)
    assert result.vectors.shape == result.images.shape == (N, k)
    assert (np.diff(result.values) <= 1e-14).all()
    np.testing.assert_allclose(result.vectors.T @ result.vectors, np.eye(k), atol=1e-10)
    assert result.n_passes == operator.passes
    scale = np.abs(operator.values).max() or 1.0
    np.testing.assert_allclose(result.images, operator.matmat(result.vectors), atol=1e-11 * scale)
    true = np.linalg.norm(operator.matmat(result.vectors) - result.vectors * result.values, axis=0)
    np.testing.assert_allclose(result.residuals, true, atol=1e-11 * scale)
    assert result.converged
    expected = np.sort(operator.values)[::-1][:k]
    np.testing.assert_allclose(result.values, expected, atol=2e-6 * scale)


def test_the_tolerance_is_an_angle():
    operator = Known(SPECTRA["gap"])
    exact = np.column_stack([operator.vector(i) for i in range(4)])
    for tol in (1e-2, 1e-5, 1e-9):
        found = top_eigenpairs(operator, 4, tol=tol, random_state=0).vectors
        assert np.linalg.norm(found - exact @ (exact.T @ found), 2) <= 2 * tol


def test_a_known_start_and_image_save_a_pass():
    operator = Known(SPECTRA["gap"])
    start = np.random.default_rng(1).normal(size=(N, 8))
    plain = top_eigenpairs(operator, 4, start=start, random_state=0)
    before = operator.passes
    given = top_eigenpairs(operator, 4, start=start, start_image=Known(SPECTRA["gap"]).matmat(start), random_state=0)
    assert operator.passes - before == given.n_passes - 1 == plain.n_passes - 1
    np.testing.assert_allclose(given.values, plain.values, atol=1e-12)


def test_too_few_passes_are_reported_not_hidden():
    result = top_eigenpairs(Known(SPECTRA["no gap"]), 5, tol=1e-10, max_iter=3, random_state=0)
    assert not result.converged
    assert result.n_passes == 3
    assert (result.residuals > result.target).any()


def test_long_runs_restart_converge_and_report_every_pass():
    operator = Known(np.linspace(1, 0, N))
    seen = []
    options = {"random_state": 0, "report": lambda *facts: seen.append(facts)}
    result = top_eigenpairs(operator, 3, tol=1e-4, max_iter=500, **options)
    assert result.converged
    assert result.n_passes > 13  # more blocks than are kept
    assert [passes for passes, _, _ in seen] == list(range(1, result.n_passes + 1))
    assert seen[-1][1] <= seen[-1][2]
    np.testing.assert_allclose(result.values, operator.values[:3], atol=1e-6)


@pytest.mark.parametrize("n", [10, DIRECT_BELOW, DIRECT_BELOW + 1, 700])
def test_a_deflated_pair_does_not_stand_before_negative_ones(n):
    operator = Known(np.concatenate([[0.5, 0.0], np.linspace(-0.1, -1, n - 2)]))
    result = top_eigenpairs(operator, 3, tol=1e-8, max_iter=500, deflate=operator.vector(1), random_state=0)
    np.testing.assert_allclose(result.values, np.delete(operator.values, 1)[:3], atol=1e-7)


# SciPy's solvers: the same target


def by_scipy(operator, k, solver, tol=1e-8, max_iter=500):
    unwanted = operator.vector(operator.shape[0] - 1)
    options = {"tol": tol, "max_iter": max_iter, "start": None, "deflate": unwanted, "random_state": 0}
    return scipy_eigenpairs(operator, k, solver, **options)


CROWDED = {
    "double": np.concatenate([[1.0, 1.0, 0.95], np.linspace(0.9, 0, 297)]),
    "threefold": np.concatenate([[1.0, 1.0, 1.0, 0.95], np.linspace(0.9, 0, 296)]),
    "gap": np.concatenate([[0.99, 0.95, 0.9], np.linspace(0.3, 0, 297)]),
    "crowded": np.concatenate([[0.9999, 0.9995, 0.999, 0.995], np.linspace(0.99, 0, 296)]),
}


@pytest.mark.parametrize("solver", ["arpack", "lobpcg"])
@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-8])
@pytest.mark.parametrize("name", CROWDED)
def test_scipys_solvers_find_the_same(solver, tol, name):
    spectrum = CROWDED[name]
    operator = Known(spectrum)
    result = by_scipy(operator, 3, solver, tol)
    assert result.converged
    assert result.n_passes == operator.passes
    assert result.target == pytest.approx(tol * (spectrum[2] - spectrum[3]), rel=0.3)
    true = np.linalg.norm(operator.matmat(result.vectors) - result.vectors * result.values, axis=0)
    np.testing.assert_allclose(result.residuals, true, atol=1e-12)
    assert (true <= result.target).all()
    np.testing.assert_allclose(result.vectors.T @ result.vectors, np.eye(3), atol=1e-10)
    exact = np.column_stack([operator.vector(i) for i in range(3)])
    assert np.linalg.norm(result.vectors - exact @ (exact.T @ result.vectors), 2) <= 2 * tol
    assert np.array_equal(by_scipy(Known(spectrum), 3, solver, tol).vectors, result.vectors)


def test_arpack_returns_k_pairs_even_when_it_gives_up(monkeypatch):
    def gives_up(linear, k, **options):
        raise ArpackNoConvergence("no", np.array([0.99]), np.eye(N)[:, :1])

    monkeypatch.setattr("biclique.spectral.alternatives.eigsh", gives_up)
    result = by_scipy(Known(SPECTRA["gap"]), 4, "arpack")
    assert result.values.shape == (4,)
    assert not result.converged


def test_lobpcg_says_when_it_misses_the_target_and_scipys_words_are_not_passed_on(monkeypatch, recwarn):
    """Residuals that are mere rounding give lobpcg an ill-conditioned matrix, on some CPUs."""

    def warns(*args, **options):
        warnings.warn("An ill-conditioned matrix detected", LinAlgWarning, stacklevel=1)
        return lobpcg(*args, **options)

    monkeypatch.setattr("biclique.spectral.alternatives.lobpcg", warns)
    result = by_scipy(Known(1 - np.linspace(0, 1, N) ** 2), 4, "lobpcg", tol=1e-10, max_iter=30)
    assert not result.converged
    assert (result.residuals > result.target).any()
    assert not recwarn.list


# Starts


def test_small_residuals_are_not_trusted_before_the_others_have_settled():
    """A start that nearly holds three eigenvectors, and hardly the largest: residuals are small after two passes."""
    spectrum = np.concatenate([[1.0, 0.9, 0.8, 0.7], 0.6 * 0.95 ** np.arange(N - 4)])
    operator = Known(spectrum)
    known = np.column_stack([operator.vector(i) for i in (1, 2, 3)])
    for seed in range(20):
        random = np.random.default_rng(seed).normal(size=(N, 7)) / np.sqrt(N)
        start = np.column_stack([known + 1e-3 * random[:, :3], random[:, 3:]])
        found = top_eigenpairs(operator, 3, tol=1e-3, start=start, start_image=operator.matmat(start), random_state=0)
        np.testing.assert_allclose(found.values, spectrum[:3], atol=1e-4)


@pytest.mark.parametrize(
    "start", [np.ones((N, 8)), np.random.default_rng(1).normal(size=(N, 12))], ids=["flat", "wide"]
)
@pytest.mark.parametrize("imaged", [False, True])
@pytest.mark.parametrize("name", ["gap", "no gap"])
def test_a_start_that_is_no_basis_or_wider_than_a_block(start, imaged, name):
    operator = Known(SPECTRA[name])
    image = operator.matmat(start) if imaged else None
    options = {"tol": 1e-6, "max_iter": 300, "start": start, "start_image": image}
    result = top_eigenpairs(operator, 4, random_state=0, **options)
    assert result.converged
    np.testing.assert_allclose(result.values, SPECTRA[name][:4], atol=1e-8)


# Small problems, decomposed whole or for a few pairs


@pytest.fixture(params=[np.inf, 0], ids=["whole", "few"])
def both_ways(request, monkeypatch):
    """Every number of pairs is many, or few."""
    monkeypatch.setattr(solver, "FEW", request.param)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("k", [0, 3, 50])
def test_small_problems_are_solved_exactly(name, k):
    operator = Known(SPECTRA[name][:: N // 50])
    found = dense_eigenpairs(operator, k)
    np.testing.assert_allclose(found.values, np.sort(operator.values)[::-1][:k], atol=1e-13)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(found.images, operator.matmat(found.vectors), atol=1e-13)
    np.testing.assert_allclose(found.images, found.vectors * found.values, atol=1e-13)


@pytest.mark.parametrize("how", ["too few", "skew", "no eigenvectors", "error"])
def test_a_few_pairs_that_are_wrong_are_not_taken(how, monkeypatch):
    """LAPACK's solver for a few eigenpairs must not be believed."""
    operator = Known(np.linspace(1, 0, 40))
    with monkeypatch.context() as patch:
        patch.setattr(solver, "FEW", np.inf)
        expected = dense_eigenpairs(operator, 3)

    def broken(matrix, **_):
        if how == "error":
            raise np.linalg.LinAlgError("no convergence")
        values, vectors = (part[..., -3:] for part in np.linalg.eigh(matrix))
        if how == "too few":
            return values[:0], vectors[:, :0]
        return values, vectors[:, [0] * 3] if how == "skew" else np.roll(vectors, 1, axis=0)

    monkeypatch.setattr(solver, "eigh", broken)
    found = dense_eigenpairs(operator, 3)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.vectors, expected.vectors)
