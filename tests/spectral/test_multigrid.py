import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence
from scipy.spatial import cKDTree
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from biclique.gram.sparse import SparseGram
from biclique.spectral import multigrid as graph_module
from biclique.spectral import shift_invert
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.multigrid import graph_eigenpairs
from biclique.spectral.shift_invert import small_graph_eigenpairs
from biclique.spectral.solver import RESOLVED_GAP, dense_eigenpairs
from tests.oracles import projector


def frozen(K):
    K = sparse.csr_array(K, dtype=float)
    K.sort_indices()
    for part in (K.data, K.indices, K.indptr):
        part.setflags(write=False)
    return K


def from_edges(n, edges, weights=1.0):
    edges = np.asarray(edges)
    A = sparse.coo_array((np.broadcast_to(weights, len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    return frozen(A + A.T)


def neighbour_graph(X, q=10):
    n = len(X)
    nearest = cKDTree(X).query(X, q)[1]
    A = sparse.coo_array((np.ones(n * q), (np.repeat(np.arange(n), q), nearest.ravel())), shape=(n, n)).tocsr()
    return frozen((A + A.T) / 2)


def path(n):
    return from_edges(n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))


def ring(n):
    return from_edges(n, np.column_stack([np.arange(n), (np.arange(n) + 1) % n]))


def grid_points(n, seed=0):
    """Points in a long strip: neighbours along it, so that the top of the spectrum is crowded."""
    return np.random.default_rng(seed).uniform(size=(n, 2)) * [8, 1]


def uneven(n=700):
    """A ring with chords whose weights range over six orders of magnitude."""
    rng = np.random.default_rng(1)
    edges = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    chords = np.column_stack([np.arange(n), (np.arange(n) + rng.integers(2, 9, n)) % n])
    return from_edges(n, np.vstack([edges, chords]), 10.0 ** rng.uniform(-6, 0, 2 * n))


def hubs(n=800):
    """A strip with three vertices tied to every seventh other."""
    edges = [(h, j) for h in range(3) for j in range(10 + h, n, 7)]
    return frozen(neighbour_graph(grid_points(n)) + from_edges(n, edges))


def bridged(n=400):
    """Two strips joined by one weak edge."""
    strip = neighbour_graph(grid_points(n))
    both = sparse.block_diag([strip, neighbour_graph(grid_points(n, 1))])
    return frozen(both + from_edges(2 * n, [(n - 1, n)], 1e-4))


GRAPHS = {
    "strip": neighbour_graph(grid_points(700)),
    "path": path(600),
    "uneven": uneven(),
    "hubs": hubs(),
    "bridged": bridged(),
}


def decomposition(cut):
    """Eigenpairs of B, descending, without the trivial vector."""
    B = cut.matmat(np.eye(cut.shape[0]))
    values, vectors = np.linalg.eigh((B + B.T) / 2 - 10 * np.outer(cut.trivial, cut.trivial))
    return values[::-1], vectors[:, ::-1]


def check_pairs(cut, result, k, tol=1e-3):
    values, vectors = decomposition(cut)
    gap = values[k - 1] - values[k]
    assert result.converged
    assert result.target <= 1.001 * tol * gap + 2e-12
    np.testing.assert_allclose(result.values, values[:k], rtol=0, atol=tol * gap + 1e-12)
    np.testing.assert_allclose(result.vectors.T @ result.vectors, np.eye(k), atol=1e-12)
    assert np.abs(cut.trivial @ result.vectors).max() < 1e-12
    assert np.linalg.norm(projector(result.vectors) - projector(vectors[:, :k]), 2) < 3 * tol
    check_residuals(cut, result)


def check_residuals(cut, result):
    """What is reported is what it says: images and residuals, computed anew."""
    images = cut.matmat(result.vectors)
    np.testing.assert_allclose(result.images, images, rtol=0, atol=1e-13)
    true = np.linalg.norm(images - result.vectors * result.values, axis=0)
    np.testing.assert_allclose(result.residuals, true, rtol=1e-3, atol=1e-13)
    assert (true <= result.target).all() == result.converged
    assert (np.diff(result.values) <= 0).all()


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(("eigenpairs", "tol"), [(graph_eigenpairs, 1e-3), (small_graph_eigenpairs, 1e-5)])
def test_pairs_are_those_of_a_full_decomposition(eigenpairs, tol, name, k, order):
    weights = np.random.default_rng(0).integers(1, 4, GRAPHS[name].shape[0])
    weights.setflags(write=False)
    cut = NormalizedCut(SparseGram(GRAPHS[name]), order, weights)
    check_pairs(cut, eigenpairs(cut, k, tol=tol, random_state=0), k, tol=tol)


def test_a_factorisation_finds_both_of_a_double_eigenvalue():
    n = 601
    found = small_graph_eigenpairs(NormalizedCut(SparseGram(ring(n)), 2), 4, tol=1e-5, random_state=0)
    np.testing.assert_allclose(found.values, np.cos(2 * np.pi / n * np.array([1, 1, 2, 2])), rtol=0, atol=1e-12)


def star(arms, length):
    """Equal paths from one vertex: the eigenvalues of a path are repeated, one time less than there are arms."""
    n = arms * length + 1
    ends = np.arange(1, n)
    starts = np.where((ends - 1) % length == 0, 0, ends - 1)
    return frozen(from_edges(n, np.column_stack([starts, ends])) + sparse.eye_array(n))


@pytest.mark.parametrize("seed", range(4))
def test_an_eigenvalue_of_many_vectors_is_found_as_often_as_it_is_there(seed):
    """ARPACK alone finds one of 99 vectors less, of this eigenvalue, for some starts."""
    cut = NormalizedCut(SparseGram(star(100, 9)), 2)
    found = small_graph_eigenpairs(cut, 19, tol=1e-5, random_state=seed)
    np.testing.assert_allclose(found.values, found.values[0], rtol=0, atol=1e-12)
    assert found.residuals.max() < 1e-12


def joined_copies(copies, size, weight):
    """The same dense graph many times, in one vertex of each connected with all others."""
    own = np.random.RandomState(0).random_sample((size, size))
    K = np.kron(np.eye(copies), own + own.T)
    K[::size, ::size] += weight * (1 - np.eye(copies))
    return frozen(K)


@pytest.mark.parametrize(
    ("graph", "k"),
    [(star(100, 4), 39), (star(200, 3), 39), (joined_copies(12, 50, 1.0), 19), (joined_copies(20, 30, 0.01), 59)],
)
def test_eigenvalues_of_symmetric_graphs_are_those_of_a_full_decomposition(graph, k):
    """ARPACK gives up on some of them, and misses copies of an eigenvalue that others are near."""
    cut = NormalizedCut(SparseGram(graph), 2)
    exact = dense_eigenpairs(cut, k, cut.trivial).values
    found = small_graph_eigenpairs(cut, k, tol=1e-5, random_state=0)
    np.testing.assert_allclose(found.values, exact, rtol=0, atol=1e-9)


def no_convergence(*_, **__):
    raise ArpackNoConvergence("", np.empty(0), np.empty((0, 0)))


def test_what_arpack_does_not_find_is_left_to_block_krylov(monkeypatch):
    monkeypatch.setattr(shift_invert, "arpack", no_convergence)
    monkeypatch.setattr(shift_invert, "graph_eigenpairs", None)
    cut = NormalizedCut(SparseGram(GRAPHS["strip"]), 2)
    check_pairs(cut, small_graph_eigenpairs(cut, 4, tol=1e-5, random_state=0), 4, tol=1e-5)


def test_what_a_factorisation_does_not_find_is_left_to_multigrid(monkeypatch):
    monkeypatch.setattr(shift_invert, "arpack", no_convergence)
    monkeypatch.setattr(shift_invert, "INVERSE_TOLERANCE", 0.9)
    cut = NormalizedCut(SparseGram(GRAPHS["strip"]), 2)
    check_pairs(cut, small_graph_eigenpairs(cut, 4, tol=1e-9, random_state=0), 4, tol=1e-9)


@pytest.mark.parametrize("n", [600, 5000])
def test_a_ring_whose_wanted_pairs_end_inside_a_double_eigenvalue(n):
    """λ_3 = λ_4: there is no gap to go by, and residuals fall to rounding."""
    cut = NormalizedCut(SparseGram(ring(n)), 2.1)
    result = graph_eigenpairs(cut, 3, random_state=0)
    check_residuals(cut, result)
    assert result.converged
    assert result.target < 1e-11
    angles = 2 * np.pi * np.array([1, 1, 2]) / n
    np.testing.assert_allclose(result.values, np.cos(angles), rtol=0, atol=1e-13)


def test_a_long_path_has_its_cosines():
    """Gaps of 1e-8 of the largest eigenvalue; K = path with loops at its ends, so that x_j = cos(πi(j + ½)/n)."""
    n = 20_000
    K = frozen(path(n) + from_edges(n, [(0, 0), (n - 1, n - 1)], 0.5))
    cut = NormalizedCut(SparseGram(K), 2)
    result = graph_eigenpairs(cut, 2, tol=0.01, random_state=0)
    check_residuals(cut, result)
    assert result.converged
    np.testing.assert_allclose(result.values, np.cos(np.pi * np.array([1, 2]) / n), rtol=0, atol=1e-12)
    exact = np.cos(np.pi * np.outer(np.arange(n) + 0.5, [1, 2]) / n) * np.sqrt(2 / n)
    np.testing.assert_allclose(np.abs((exact * result.vectors).sum(axis=0)), 1, atol=1e-4)


def test_two_moons_of_20000_points():
    X, y = make_moons(20_000, noise=0.06, random_state=0)
    cut = NormalizedCut(SparseGram(neighbour_graph(X)), 2.1)
    before = cut.n_passes
    seen = []
    result = graph_eigenpairs(cut, 1, random_state=0, report=lambda *numbers: seen.append(numbers))
    assert cut.n_passes - before == result.n_passes == len(seen) + 1
    assert seen[-1][2] == result.target
    assert seen[-1][1] == pytest.approx(result.residuals.max(), rel=1e-3)
    assert result.converged
    assert result.n_passes <= 20  # block Krylov needs hundreds
    check_residuals(cut, result)
    assert adjusted_rand_score(y, result.vectors[:, 0] > 0) >= 0.98


def test_the_same_random_state_gives_the_same_bits():
    cut = NormalizedCut(SparseGram(neighbour_graph(grid_points(3000))), 2.1)
    first, second = (graph_eigenpairs(cut, 2, random_state=5) for _ in range(2))
    assert np.array_equal(first.vectors, second.vectors)
    assert np.array_equal(first.values, second.values)
    other = graph_eigenpairs(cut, 2, random_state=6)
    assert not np.array_equal(first.vectors, other.vectors)
    np.testing.assert_allclose(first.values, other.values, atol=first.target)


def test_too_few_iterations_are_not_called_converged():
    cut = NormalizedCut(SparseGram(neighbour_graph(grid_points(3000))), 2.1)
    result = graph_eigenpairs(cut, 2, max_iter=1, tol=1e-6, random_state=0)
    assert not result.converged
    assert result.n_passes == 3
    check_residuals(cut, result)


def test_many_pairs_of_a_graph_that_hardly_coarsens():
    """b = 63 columns: the only levels with as many vertices are nearly as large as the graph."""
    cut = NormalizedCut(SparseGram(neighbour_graph(grid_points(800))), 2.1)
    check_pairs(cut, graph_eigenpairs(cut, 60, tol=1e-3, random_state=0), 60)


def test_a_graph_that_fills_in_is_coarsened_without_smoothing(monkeypatch):
    """Neighbours at random: smoothed coarse graphs would be full."""
    n = 1200
    edges = np.random.default_rng(0).integers(0, n, (5 * n, 2))
    cut = NormalizedCut(SparseGram(frozen(from_edges(n, edges) + ring(n))), 2.1)
    monkeypatch.setattr(graph_module, "COARSEST", 30)
    monkeypatch.setattr(graph_module, "FILL", 0.1)
    check_pairs(cut, graph_eigenpairs(cut, 2, tol=1e-3, random_state=0), 2)


def test_a_star_goes_to_block_krylov(monkeypatch):
    """All vertices hang on one hub, with weights that tell them apart: nothing can be put together."""
    n = 700
    weights = np.linspace(1, 2, n - 1)
    K = frozen(from_edges(n, np.column_stack([np.zeros(n - 1, int), np.arange(1, n)]), weights) + sparse.eye_array(n))
    cut = NormalizedCut(SparseGram(K), 2)
    values, _ = decomposition(cut)
    assert values[0] - values[1] < RESOLVED_GAP * values[0]
    check_pairs(cut, graph_eigenpairs(cut, 1, tol=1e-3, random_state=0), 1)  # small enough to be decomposed
    monkeypatch.setattr(graph_module, "DECOMPOSED", 600)
    result = graph_eigenpairs(cut, 1, random_state=0, max_iter=20)
    assert result.n_passes > 2
    assert result.values[0] == pytest.approx(values[0], abs=1e-3)
    # The gap is smaller than block Krylov resolves: to call that converged would be wrong.
    assert not result.converged
