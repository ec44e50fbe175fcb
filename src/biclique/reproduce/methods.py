"""The rows of the paper's tables: for each, every parameter's similarity matrix, embedding and error rates.

An embedding is the paper's: √S normalised and the leading eigenvectors of B, k columns, rows as they are. Its fourth
step, k-means, is repeated; error rates are over the repeats.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.subspace_clustering import InhomogeneousSubspaceClustering
from biclique.exceptions import DataError, DegreeError
from biclique.gram.dense import DenseGram
from biclique.hypergraph import Hypergraph, cost_graph, draw_together, kernel_costs, modelling_gram
from biclique.hypergraph.points.modellings import joined_tuples, span_distances
from biclique.kernels.named import RBF, Polynomial
from biclique.multiway import biclique_gram
from biclique.reproduce.printed import DEGREES, GAMMAS, OFFSETS
from biclique.scores import clustering_error
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.solver import dense_eigenpairs

MOST_STEPS = 100
"""Steps of a run of k-means at most."""

# Many runs of plain k-means at once, as the paper's repeats need: one k-means++ start each


def repeated_kmeans(rows: FloatArray, k: int, n_repeats: int, random: np.random.RandomState) -> IntArray:
    """Labels of ``n_repeats`` runs, shape (n_repeats, n).

    A run starts from k-means++ and steps until no label changes, at most 100 times; an empty cluster takes the point
    that is farthest from its centre.
    """
    centres = _plus_plus(rows, k, n_repeats, random)  # (R, k, d)
    labels = np.full((n_repeats, len(rows)), -1)
    active = np.arange(n_repeats)
    for _ in range(MOST_STEPS):
        distances = _squared_distances(rows, centres[active])  # (A, n, k)
        found = distances.argmin(axis=2)
        moved = (found != labels[active]).any(axis=1)
        labels[active] = found
        active = active[moved]
        if not len(active):
            break
        centres[active] = _means(rows, found[moved], k, distances[moved])
    return labels


def _squared_distances(rows: FloatArray, centres: FloatArray) -> FloatArray:
    """|x_i − c_rj|², shape (R, n, k)."""
    inner = np.einsum("nd,rkd->rnk", rows, centres, optimize=True)
    lengths = np.einsum("rkd,rkd->rk", centres, centres)
    return np.asarray(np.einsum("nd,nd->n", rows, rows)[None, :, None] - 2 * inner + lengths[:, None, :])


def _plus_plus(rows: FloatArray, k: int, n_repeats: int, random: np.random.RandomState) -> FloatArray:
    """Starts drawn with probability proportional to the squared distance to the nearest one so far."""
    n, d = rows.shape
    centres = np.empty((n_repeats, k, d))
    centres[:, 0] = rows[random.randint(n, size=n_repeats)]
    nearest = np.full((n_repeats, n), np.inf)
    for j in range(1, k):
        nearest = np.minimum(nearest, np.maximum(_squared_distances(rows, centres[:, j - 1 : j])[:, :, 0], 0.0))
        totals = np.cumsum(nearest, axis=1)
        # Where all points coincide with a start already, any will do.
        drawn = random.random_sample(n_repeats) * totals[:, -1]
        centres[:, j] = rows[np.minimum((totals < drawn[:, None]).sum(axis=1), n - 1)]
    return centres


def _means(rows: FloatArray, labels: IntArray, k: int, distances: FloatArray) -> FloatArray:
    """The means of clusters, shape (R, k, d)."""
    n_runs, n = labels.shape
    cells = (labels + k * np.arange(n_runs)[:, None]).ravel()
    counts = np.bincount(cells, minlength=n_runs * k)
    sums = [np.bincount(cells, np.tile(column, n_runs), minlength=n_runs * k) for column in rows.T]
    means = np.column_stack(sums) / np.maximum(counts, 1)[:, None]
    for cell in np.flatnonzero(counts == 0):
        run = cell // k
        means[cell] = rows[distances[run][np.arange(n), labels[run]].argmax()]
    return means.reshape(n_runs, k, -1)


def error_rates(truth: IntArray, labels: IntArray, k: int) -> FloatArray:
    """The share of points outside the best matching of clusters and classes, for every run, shape (R,)."""
    n_runs, n = labels.shape
    cells = ((k * np.arange(n_runs)[:, None] + labels) * k + truth).ravel()
    counts = np.bincount(cells, minlength=n_runs * k * k).reshape(n_runs, k, k)
    best = np.max([counts[:, np.arange(k), list(order)].sum(axis=1) for order in permutations(range(k))], axis=0)
    return np.asarray(1 - best / n)


# The rows


DRAWS = 300
"""Draws of the sampled inhomogeneous edges, as in the protocol they come from."""


@dataclass(frozen=True)
class Settings:
    """What a run is done with; records of different settings never mix."""

    repeats: int
    orders: tuple[int, ...]
    seed: int = 0


@dataclass(frozen=True)
class Problem:
    """One data set, or one sequence, prepared."""

    name: str
    X: FloatArray
    y: IntArray
    k: int
    raw: FloatArray | None = None
    """The features before any scaling; X itself by default."""

    @property
    def shifted(self) -> FloatArray:
        """X + max(−X), so that kernels of inner products are not negative."""
        return self.X + np.max(-self.X)

    @property
    def as_in_demo(self) -> FloatArray:
        """What the public demo does to raw features: a translation by −mean/deviation, column by column, + max(−X)."""
        raw = self.X if self.raw is None else self.raw
        deviation = raw.std(axis=0, ddof=1)
        translated = raw - raw.mean(axis=0) / np.where(deviation > 0, deviation, 1.0)
        return np.asarray(translated + np.max(-translated))


Result = dict[str, Any]
"""Parameters, order, mean and deviation of the error rate, seconds; or a reason why there is none."""

Method = Callable[[Problem, Settings, np.random.RandomState], list[Result]]
Embed = Callable[[FloatArray, float, int], FloatArray]
"""K, order and k to the rows that k-means gets, shape (n, k)."""


ROUNDED = 10 * float(np.finfo(np.float64).eps)
"""Eigengaps up to this share of the largest eigenvalue, times n, are rounding."""


def embedding(K: FloatArray, order: float, k: int) -> FloatArray:
    """[√S normalised, leading k − 1 eigenvectors of B], shape (n, k), of a stored K.

    Without an eigengap behind them rounding chooses the eigenvectors. If γ is very large, K is the identity: then they
    follow the order of the rows, and that of the paper's data is that of the classes.
    """
    cut = NormalizedCut(DenseGram(K, n_jobs=1), order)
    pairs = dense_eigenpairs(cut, min(k, len(K) - 1), cut.trivial)
    if len(pairs.values) == k and pairs.values[k - 2] - pairs.values[k - 1] <= ROUNDED * len(K) * pairs.values[0]:
        raise np.linalg.LinAlgError(f"{k - 1} eigenvectors have no eigengap behind them.")
    return np.column_stack([cut.trivial, pairs.vectors[:, : k - 1]])


def _normalized_contraction(K: FloatArray, order: float) -> FloatArray:
    """D^(−1/2) K^(m) D^(−1/2) as computed, symmetric only up to rounding."""
    contracted = biclique_gram(K, order)
    sums = contracted.sum(axis=1)
    if not np.isfinite(sums).all() or (sums <= 0).any():
        raise DegreeError("a degree is not positive or not finite.")
    root = 1 / np.sqrt(sums)
    return np.asarray(root[:, None] * contracted * root)


def demo_embedding(K: FloatArray, order: float, k: int) -> FloatArray:
    """What the authors' public demo takes: the first k columns of a general eigenvalue routine, not sorted."""
    return np.asarray(np.linalg.eig(_normalized_contraction(K, order))[1][:, :k].real)


def ascending_embedding(K: FloatArray, order: float, k: int) -> FloatArray:
    """What the demo would take if its matrix came out exactly symmetric: the first k of ascending eigenvalues."""
    return np.asarray(np.linalg.eigh(_normalized_contraction(K, order))[1][:, :k])


Similarity = Callable[[Problem, np.random.RandomState], Callable[..., FloatArray]]
"""From a problem to a function that builds the similarity matrix of given parameters."""

GAUSSIAN = tuple({"gamma": gamma} for gamma in GAMMAS)
POLYNOMIAL = tuple({"degree": degree, "coef0": offset} for degree, offset in product(DEGREES, OFFSETS))
REPEATS = ({"repeats": False}, {"repeats": True})


def search(
    grid: Sequence[Mapping[str, float]], similarity: Similarity, embed: Embed = embedding, *, every_order: bool = False
) -> Method:
    """The errors of every choice of the parameters, and the seconds of the matrix and its eigenvectors.

    With ``every_order`` the matrix is a kernel and the biclique model contracts it; order 2 is the baseline. Other
    matrices are contractions already: what is left is the ordinary cut.
    """

    def method(problem: Problem, settings: Settings, random: np.random.RandomState) -> list[Result]:
        orders = settings.orders if every_order else (2,)
        build = similarity(problem, random)
        results: list[Result] = []
        for parameters in grid:
            start = time.perf_counter()
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    K = build(**parameters)
            except DataError as error:
                results.append({**parameters, "order": orders[0], "error": None, "reason": str(error)})
                continue
            built = time.perf_counter() - start
            for order in orders:
                start = time.perf_counter()
                try:
                    rows = embed(K, order, problem.k)
                except (DegreeError, np.linalg.LinAlgError) as error:
                    results.append({**parameters, "order": order, "error": None, "reason": str(error)})
                    continue
                seconds = built + time.perf_counter() - start
                labels = repeated_kmeans(rows, problem.k, settings.repeats, random)
                errors = error_rates(problem.y, labels, problem.k)
                found = {"error": float(errors.mean()), "deviation": float(errors.std()), "seconds": seconds}
                results.append({**parameters, "order": order, **found})
        return results

    return method


def _gaussian(problem: Problem, _: np.random.RandomState) -> Callable[..., FloatArray]:
    centred = problem.X - problem.X.mean(axis=0)
    return lambda gamma: RBF(gamma).block(centred, centred)


def _polynomial(X: FloatArray) -> Callable[..., FloatArray]:
    return lambda degree, coef0: Polynomial(1.0, coef0, degree).block(X, X)


def _triples(name: str) -> Similarity:
    """A modelling of triples, by γ."""
    return lambda problem, _: partial(modelling_gram, problem.X, name, n_jobs=1)


def _sampled_edges(n: int, random: np.random.RandomState) -> Hypergraph:
    """Edges of four points: three drawn together, and each other point in turn, as the protocol samples them."""
    draws = draw_together(np.zeros(n, dtype=int), 3, DRAWS, random)
    return Hypergraph.from_edges(joined_tuples(draws, n), vertices=n)


def _sampled_subspaces(problem: Problem, random: np.random.RandomState) -> Callable[..., FloatArray]:
    """d^inh on edges of four points, sampled once from all points."""
    edges = _sampled_edges(len(problem.X), random)
    tuples = edges.members.indices.reshape(edges.n_edges, 4)
    squares = np.concatenate([span_distances(problem.X[part]) ** 2 for part in np.array_split(tuples, 50)])
    return lambda gamma: cost_graph(edges, np.exp(-gamma * squares)).toarray()


def _sampled_kernels(problem: Problem, random: np.random.RandomState) -> Callable[..., FloatArray]:
    """The paper's own splitting function on edges of four points, sampled once from all points."""
    centred = problem.X - problem.X.mean(axis=0)
    edges = _sampled_edges(len(problem.X), random)
    return lambda gamma: cost_graph(edges, kernel_costs(centred, RBF(gamma))).toarray()


def label_free(problem: Problem, settings: Settings, _: np.random.RandomState) -> list[Result]:
    """Algorithm 1 at orders 2 and 4 with γ by the rule for kernels, nothing chosen with labels."""
    results = []
    for order in (2, 4):
        model = BicliqueSpectralClustering(
            problem.k,
            affinity="rbf",
            order=order,
            gamma="auto",
            row_normalize=False,
            n_init=10,
            random_state=settings.seed,
            n_jobs=1,
        )
        results.append({"order": order, **_fitted(model, problem), "gamma": model.gamma_})
    return results


def _protocol(dimension: int, restarts: int = 1) -> Method:
    """Li and Milenkovic's label-free protocol, with edges of dimension + 2 points; the best of so many searches."""

    def method(problem: Problem, settings: Settings, _: np.random.RandomState) -> list[Result]:
        d = min(dimension, problem.X.shape[1] - 1)
        model = InhomogeneousSubspaceClustering(
            problem.k, subspace_dim=d, n_restarts=restarts, random_state=settings.seed
        )
        return [{"order": d + 2, **_fitted(model, problem)}]

    return method


def _fitted(model: BicliqueSpectralClustering | InhomogeneousSubspaceClustering, problem: Problem) -> Result:
    """Error and seconds of an estimator that has no repeats."""
    start = time.perf_counter()
    model.fit(problem.X)
    seconds = time.perf_counter() - start
    return {"error": clustering_error(problem.y, model.labels_), "deviation": 0.0, "seconds": seconds}


METHODS: dict[str, Method] = {
    "gaussian_ours": search(GAUSSIAN, _gaussian, every_order=True),
    "gaussian_demo": search(GAUSSIAN, _gaussian, demo_embedding, every_order=True),
    "gaussian_ascending": search(GAUSSIAN, _gaussian, ascending_embedding, every_order=True),
    "gaussian_max": search(GAUSSIAN, _triples("max")),
    "gaussian_affine_eigenvalue": search(GAUSSIAN, _triples("affine_eigenvalue")),
    "gaussian_affine_distance": search(GAUSSIAN, _triples("affine_distance")),
    "gaussian_vertex_distance": search(GAUSSIAN, _triples("vertex_distance")),
    "polynomial_ours": search(POLYNOMIAL, lambda problem, _: _polynomial(problem.shifted), every_order=True),
    "polynomial_demo": search(
        POLYNOMIAL, lambda problem, _: _polynomial(problem.as_in_demo), demo_embedding, every_order=True
    ),
    "polynomial_max": search(
        POLYNOMIAL,
        lambda problem, _: partial(modelling_gram, problem.shifted, "max", affinity="polynomial", gamma=1.0, n_jobs=1),
    ),
    "polynomial_dot": search(REPEATS, lambda problem, _: partial(modelling_gram, problem.shifted, "dot")),
    "inhomogeneous_own": search(GAUSSIAN, _sampled_kernels),
    "inhomogeneous_subspace": search(GAUSSIAN, _sampled_subspaces),
    "inhomogeneous_protocol_4": _protocol(2),
    "inhomogeneous_protocol_5": _protocol(3),
    "inhomogeneous_protocol_5_of_3": _protocol(3, restarts=3),
    "label_free": label_free,
}
"""The methods by name; cells, tables and tests read this table."""
