"""One similarity at several orders: K is made once, and what one order finds serves the others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray, RandomState
from biclique.exceptions import ParameterError
from biclique.fit.choose import find_vertices
from biclique.fit.exact import QUICK_TOLERANCE, ExactCuts
from biclique.fit.given_rows import read_weighted
from biclique.fit.settings import CONSTRAINTS, Affinity, Auto, Settings, check_parameters
from biclique.gram.operator import GramOperator
from biclique.kernels.named import check_rows_for_kernel
from biclique.progress import Progress
from biclique.rows.array import ArrayRows
from biclique.runtime.arguments import check_random
from biclique.runtime.readable import Readable
from biclique.runtime.threads import single_threaded_blas
from biclique.selection.criteria import agreement
from biclique.spectral.cut import check_order
from biclique.spectral.solver import warn_unless_converged


@dataclass(frozen=True, repr=False)
class OrderPath(Readable):
    """What each order finds: one row per order.

    - ``eigenvalues``: of B, (n_orders, n_clusters − 1), descending.
    - ``labels``: (n_orders, n_samples).
    - ``cuts``: the mean over clusters of similarity within / similarity in all, by K itself; 1 is best. K is the same
      at every order, so these can be compared.
    - ``agreement``: the adjusted Rand index of the labels of an order and of the next one, (n_orders − 1,).
    """

    orders: FloatArray
    eigenvalues: FloatArray
    labels: IntArray
    cuts: FloatArray
    agreement: FloatArray

    def __str__(self) -> str:
        lines = [f"{'order':>7}  {'cut':>6}  {'agreement with the next':>23}  clusters"]
        for i, order in enumerate(self.orders):
            next_one = f"{self.agreement[i]:.3f}" if i < len(self.agreement) else ""
            sizes = ", ".join(map(str, sorted(np.bincount(self.labels[i]), reverse=True)))
            lines.append(f"{order:>7g}  {self.cuts[i]:>6.4f}  {next_one:>23}  {sizes}")
        return "\n".join(lines)


def order_path(
    X: Any,
    orders: Sequence[float],
    *,
    n_clusters: int = 8,
    affinity: Affinity = "rbf",
    gamma: Auto = "auto",
    sample_weight: Any = None,
    n_neighbors: int | None = None,
    row_normalize: bool | str = "auto",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    gram: str = "auto",
    eigen_tol: Auto = "auto",
    n_init: int = 1,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> OrderPath:
    """Cluster rows at several orders, for less than the price of a fit each.

    K is made once. The order enters through the shrunken degrees alone, so the vectors that one order found start the
    next, with their products by K.

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n_samples, n_features)
        With ``affinity="precomputed"``: similarities of shape (n_samples, n_samples).
    orders : sequence of numbers from 2 to infinity
        They are solved in turn: neighbouring orders next to each other are solved soonest.
    eigen_tol : float or "auto", default="auto"
        As in ``BicliqueSpectralClustering``, but "auto" is 1e-3 for a stored K too: plenty for labels.
    n_init : int, default=1
        Starts of k-means at every order, as in ``BicliqueSpectralClustering``.
    n_clusters, affinity, sample_weight, … :
        As in ``BicliqueSpectralClustering``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from biclique.selection import order_path
    >>> path = order_path(load_iris().data, [2, 3, 4, 8], n_clusters=3, random_state=0)
    >>> path.labels.shape
    (4, 150)
    >>> path.agreement.shape
    (3,)
    """
    parameters = {name: value for name, value in locals().items() if name not in ("X", "orders", "sample_weight")}
    check_parameters(parameters, CONSTRAINTS)
    several = isinstance(orders, Iterable) and not isinstance(orders, (str, bytes))
    wanted = [check_order(order) for order in orders] if several else []
    if not wanted:
        raise ParameterError(f"orders must be numbers from 2 to infinity, at least one, got {orders!r}.")
    settings = Settings.of({**parameters, "order": wanted[0]}, n_columns=n_clusters)
    if settings.kernel.neighborhoods:
        raise ParameterError(
            "order_path compares the orders of a kernel, and affinity='neighborhoods' has order 2: use affinity='rbf'."
        )
    source = ArrayRows(*read_weighted(X, sample_weight, settings.kernel, n_clusters=n_clusters))
    check_rows_for_kernel(settings.kernel.affinity, source.held)
    if settings.eigen_tol == "auto" and not settings.kernel.neighbors:
        settings = replace(settings, eigen_tol=QUICK_TOLERANCE)
    with single_threaded_blas(), Progress(bool(verbose)) as progress:
        vertices = find_vertices(settings, source)
        unlabelled = int((vertices.index < 0).sum())
        if unlabelled:
            raise ParameterError(
                f"sample_weight is 0 in {unlabelled} rows, which order_path cannot label: leave those rows out."
            )
        settings = settings.seeded()  # labels of one order must not depend on the others
        random = check_random(settings.random_state)
        cuts = ExactCuts.of_rows(settings, source, vertices, random, progress, wanted)
        found, eigenvalues, partitions = None, [], []
        for number, order in enumerate(wanted, start=1):
            found = cuts.at(order, found)
            warn_unless_converged(found.pairs)
            eigenvalues.append(found.eigenvalues)
            partitions.append(cuts.assign(found).labels)
            progress.share("orders", number / len(wanted))
        return OrderPath(
            np.array(wanted),
            np.array(eigenvalues),
            np.array(partitions)[:, vertices.index],
            kept_shares(cuts.gram, partitions, vertices.weights),
            np.array([agreement(a, b, vertices.weights) for a, b in pairwise(partitions)], dtype=float),
        )


def kept_shares(gram: GramOperator, partitions: Sequence[IntArray], weights: FloatArray) -> FloatArray:
    """For every partition the mean over clusters of wᵀKw within / wᵀKw in all: one pass over K for all of them."""
    sizes = [int(labels.max()) + 1 for labels in partitions]
    indicators = np.column_stack(
        [weights[:, None] * np.eye(k)[labels] for labels, k in zip(partitions, sizes, strict=True)]
    )
    product = gram.matmat(np.column_stack([weights, indicators]))
    kept = (indicators * product[:, 1:]).sum(axis=0) / (indicators.T @ product[:, 0])
    return np.array([shares.mean() for shares in np.split(kept, np.cumsum(sizes)[:-1])])
