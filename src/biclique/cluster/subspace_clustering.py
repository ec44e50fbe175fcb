"""Clustering points that lie near affine subspaces, by inhomogeneous hyperedges."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from biclique._typing import FloatArray, IntArray
from biclique.cluster.estimator import Estimator
from biclique.exceptions import DataError
from biclique.fit.exact import solve_cut
from biclique.fit.given_rows import read_array
from biclique.fit.settings import CONSTRAINTS, Check, check_parameters
from biclique.gram.dense import DenseGram
from biclique.hypergraph import AffineSubspace, draw_together, edge_distances, fit_subspaces, linked_pairs
from biclique.kernels.kernel import middle
from biclique.progress import Progress
from biclique.rows.array import digests, find_rows
from biclique.rows.checks import check_values
from biclique.runtime.arguments import check_count, check_random
from biclique.runtime.memory import require_memory
from biclique.spectral.cut import NormalizedCut
from biclique.spectral.rounding import kmeans

FLAT = 1e-24
"""Mean squared distances below this, for coordinates up to 1, are rounding: one subspace holds all points."""


@dataclass(eq=False, repr=False)
class InhomogeneousSubspaceClustering(ClusterMixin, Estimator):
    """Cluster points into affine subspaces: the label-free protocol of Li and Milenkovic (2017).

    Rounds: draw sets of d + 1 points inside the clusters found so far (all points at first), join each with every other
    point to a hyperedge, let cutting a vertex off cost exp(−dist²/σ) with dist its distance to the affine span of the
    rest, turn these costs into weights of pairs, and cut that graph spectrally, for several σ. Over all rounds and σ
    the partition with the smallest total squared distance to its own best-fitting subspaces is kept: no labels are
    used.

    Parameters
    ----------
    n_clusters : int, default 2
    subspace_dim : int, default 3
        d, the dimension of the affine subspaces; 3 for the point tracks of rigid motions.
    n_draws : int, default 300
        Sets drawn in a round.
    n_rounds : int, default 10
    n_restarts : int, default 1
        Searches of so many rounds from all points again; the partition with the smallest residual of all is kept. The
        authors' protocol is one; more are slower and miss fewer subspaces.
    n_init : int, default 10
        Starts of k-means.
    random_state : int, RandomState or None
    verbose : int, default 0

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
        Clusters that were found.
    subspaces_ : list of AffineSubspace
        The fitted subspace of every cluster, with ``origin``, ``basis`` and ``residual``.
    residual_ : float
        Total squared distance of the points to their subspaces.
    residual_history_ : ndarray of shape (n_rounds,)
        The best residual after every round, of the search that was kept.
    sigma_ : float
        The scale of the kept partition.

    Examples
    --------
    >>> import numpy as np
    >>> from biclique import InhomogeneousSubspaceClustering
    >>> t = np.linspace(-1, 1, 40)
    >>> X = np.concatenate([np.column_stack([t, 2 * t, t]), np.column_stack([t, -t, 1 - t])])
    >>> model = InhomogeneousSubspaceClustering(n_clusters=2, subspace_dim=1, random_state=0).fit(X)
    >>> np.bincount(model.labels_).tolist()
    [40, 40]
    """

    _constraints: ClassVar[Mapping[str, Check]] = {
        **dict.fromkeys(("n_clusters", "subspace_dim", "n_draws", "n_rounds", "n_restarts", "n_init"), check_count),
        "random_state": CONSTRAINTS["random_state"],
    }

    n_clusters: int = 2
    _: KW_ONLY
    subspace_dim: int = 3
    n_draws: int = 300
    n_rounds: int = 10
    n_restarts: int = 1
    n_init: int = 10
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Cluster the rows of X, shape (n_samples, n_features)."""
        check_parameters(self.get_params(deep=False), self._constraints)
        with self._fitting() as progress:
            X = self._read(X, reset=True)
            self._check_sizes(X)
            random = check_random(self.random_state)
            # Distances do not see a translation or a scale; products round less after both.
            offset = middle(X)
            scale = float(np.abs(X - offset).max()) or 1.0
            points = (X - offset) / scale
            keys, first, same = np.unique(digests(X), return_index=True, return_inverse=True)
            searches = [self._search(points, random, progress) for _ in range(self.n_restarts)]
            labels, history, sigma = min(searches, key=lambda search: float(search[1][-1]))
            labels = labels[first][same]  # equal rows belong together
            self.subspaces_ = fit_subspaces(X, labels, self.subspace_dim)
            self.labels_ = np.unique(labels, return_inverse=True)[1]
            self.residual_ = float(sum(subspace.residual for subspace in self.subspaces_))
            self.residual_history_ = history * scale**2
            self.sigma_ = sigma * scale**2
            self._known, self._known_labels = keys, self.labels_[first]
        self._count_clusters("no partition into more had a smaller distance to its subspaces")
        return self

    def _search(
        self, X: FloatArray, random: np.random.RandomState, progress: Progress
    ) -> tuple[IntArray, FloatArray, float]:
        """The partition with the smallest residual over all rounds and scales, the residual by round, and its σ."""
        n, size = len(X), self.subspace_dim + 1
        labels = np.zeros(n, dtype=np.intp)
        best, chosen = np.inf, 0.0
        history = np.empty(self.n_rounds)
        undivided = fit_subspaces(X, labels, self.subspace_dim)[0].residual
        if self.n_clusters == 1 or undivided <= FLAT * n:
            return labels, np.full(self.n_rounds, undivided), 0.0
        for round_ in range(self.n_rounds):
            draws = draw_together(labels, size, self.n_draws, random)
            distances = edge_distances(X, draws)
            for sigma in self._scales(distances, draws):
                found = self._cut(X, linked_pairs(np.exp(-distances / sigma), draws), random)
                residual = sum(s.residual for s in fit_subspaces(X, found, self.subspace_dim))
                if residual < best:
                    best, labels, chosen = residual, found, sigma
            history[round_] = best
            progress.say(f"round {round_ + 1} of {self.n_rounds}: residual {best:.4g}")
        return labels, history, chosen

    def _scales(self, distances: FloatArray, draws: IntArray) -> list[float]:
        """σ = 10 × the order statistic of the edges' largest dist² at position N · n_draws/k^j, j = 1, …, d + 2."""
        n_draws, size = draws.shape
        n = distances.shape[2]
        other = np.ones((n_draws, n), dtype=bool)
        other[np.arange(n_draws)[:, None], draws] = False
        largest = np.sort(distances.max(axis=1)[other])
        positions = n * n_draws / float(self.n_clusters) ** np.arange(1, size + 2)
        places = np.clip(np.rint(positions).astype(int), 1, len(largest)) - 1
        # Points exactly on a subspace have distance zero, and a scale must not.
        floor = largest[np.searchsorted(largest, 1e-20)] if largest[-1] > 1e-20 else 1.0
        return [10 * max(float(value), float(floor) * 1e-6, np.finfo(float).tiny) for value in largest[places]]

    def _cut(self, X: FloatArray, A: FloatArray, random: np.random.RandomState) -> IntArray:
        """Cut the graph, rows divided by √degree; a point without weight joins its nearest subspace."""
        linked = A.sum(axis=1) > 0
        k = self.n_clusters
        if int(linked.sum()) <= k:
            return np.asarray(random.randint(k, size=len(X)))
        cut = NormalizedCut(DenseGram(A if linked.all() else A[np.ix_(linked, linked)]), 2)
        pairs = solve_cut(cut, k - 1, random, Progress())
        rows = pairs.vectors / np.sqrt(cut.shrunken)[:, None]
        found = kmeans(rows / np.abs(rows).max(), np.ones(len(rows)), k, n_init=self.n_init, random_state=random).labels
        if linked.all():
            return found
        labels = np.zeros(len(X), dtype=np.intp)
        labels[linked] = np.unique(found, return_inverse=True)[1]
        labels[~linked] = _nearest(X[~linked], fit_subspaces(X[linked], labels[linked], self.subspace_dim))
        return labels

    def predict(self, X: Any) -> IntArray:
        """The cluster of rows: ``labels_`` for the training rows, that of the nearest subspace for new ones."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        place = find_rows(self._known, X)
        return np.where(place >= 0, self._known_labels[place], _nearest(X, self.subspaces_))

    def _read(self, X: Any, *, reset: bool) -> FloatArray:
        if sparse.issparse(X):
            raise DataError(f"{type(self).__name__} needs dense rows, got a sparse matrix: pass X.toarray().")
        X = read_array(X, self, reset=reset, dtype=np.float64)
        check_values(X, getattr(self, "feature_names_in_", None))
        return np.asarray(X)

    def _check_sizes(self, X: FloatArray) -> None:
        n, size = len(X), self.subspace_dim + 1
        if self.subspace_dim >= X.shape[1]:
            raise DataError(
                f"subspace_dim={self.subspace_dim} must be below the number of columns (n_features = {X.shape[1]}): a "
                "subspace of that dimension holds every point."
            )
        if n < max(size + 1, self.n_clusters):
            raise DataError(
                f"X has {n} rows (n_samples={n}), but subspace_dim={self.subspace_dim} and "
                f"n_clusters={self.n_clusters} need at least {max(size + 1, self.n_clusters)}: lower them."
            )
        require_memory(
            8.0 * n * (3 * n + 4 * self.n_draws * (size + 1)),
            f"hyperedges of {self.n_draws} draws and {n} points",
            "lower n_draws, or fit a sample of the rows and predict the rest.",
        )


def _nearest(X: FloatArray, subspaces: list[AffineSubspace]) -> IntArray:
    return np.asarray(np.argmin([subspace.squared_distances(X) for subspace in subspaces], axis=0))
