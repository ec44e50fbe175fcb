"""One similarity at several orders: K is made once, and what one order finds serves the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from biclique._typing import FloatArray, IntArray, RandomState
from biclique.exceptions import ParameterError
from biclique.fit.exact import (
    ExactFit,
    ExactFitted,
    ExactSearch,
    Solved,
    SolverOptions,
    assign_exact,
    hold_or_change,
    solve_exact,
)
from biclique.fit.fine_gamma import finer_gamma
from biclique.fit.graphs import GraphFitted, GraphSearch
from biclique.fit.plan import QUICK_TOLERANCE, Plan, Planned, choose_kernel, find_vertices, plan_exact, plan_graph
from biclique.fit.settings import CONSTRAINTS, Affinity, Auto, Settings, check_parameters
from biclique.gram import GramOperator
from biclique.kernels import SAMPLE, Nearby
from biclique.progress import Progress
from biclique.rows.array import ArrayRows, Vertices
from biclique.rows.checks import check_clusters_fit, check_weights
from biclique.runtime.arguments import check_random
from biclique.runtime.threads import single_threaded_blas
from biclique.selection.criteria import agreement
from biclique.selection.halves import fixed_seed
from biclique.selection.reading import read_rows
from biclique.spectral import PointClusters, warn_unless_converged
from biclique.spectral.cut import Attempt, OrderRule, check_order


@dataclass(frozen=True)
class Found:
    """One fit: eigenvalues of B and the labels of the vertices."""

    eigenvalues: FloatArray
    labels: IntArray


class Cuts(Protocol):
    """One K, cut at one order after the other."""

    @property
    def gram(self) -> GramOperator:
        """K."""

    def at(self, order: Auto, scalings: Sequence[bool | str]) -> list[Found]:
        """The fit at an order, with labels for each value of ``row_normalize``."""


def make_cuts(
    settings: Settings, vertices: Vertices, orders: Sequence[Auto], progress: Progress, *, together: bool = False
) -> Cuts:
    """K of the vertices, by the way that the settings ask for.

    ``together``: orders are solved in one space of vectors. One that cannot be solved then fails all of them.
    """
    if settings.kernel.neighbors:
        return GraphCuts(settings, vertices, progress)
    return KernelCuts(settings, vertices, orders, progress, together=together)


class KernelCuts:
    """K of a kernel or a given matrix."""

    def __init__(
        self, settings: Settings, vertices: Vertices, orders: Sequence[Auto], progress: Progress, *, together: bool
    ) -> None:
        self.vertices, self.progress = vertices, progress
        self._nearby: Nearby | None = None
        numbers = tuple(order for order in orders if not isinstance(order, str))
        # γ="auto" may be raised at order 2 alone: which order comes first must not matter.
        self.plan = self._planned(settings, min(numbers) if numbers else "auto")
        random = check_random(settings.random_state)
        self.plan, prepared = hold_or_change(self.plan, vertices, random, progress)
        self.gram = prepared.base
        rule = OrderRule.of(vertices.weights, settings.n_groups, self.plan.orders)
        rule = replace(rule, orders=numbers or self.plan.orders)
        self._search = ExactSearch(self.plan.settings, prepared, rule, SolverOptions.of(self.plan), progress)
        self._points = PointClusters(vertices.data, vertices.weights, settings.n_groups, settings.random_state)
        self._last: Attempt[Solved] | None = None
        self._together = numbers if together else ()
        self._found: dict[float, Solved] = {}

    def _planned(self, settings: Settings, order: Auto) -> Plan:
        settings = replace(settings, cut=replace(settings.cut, order=order))
        chosen = choose_kernel(settings, self.vertices, check_random(settings.random_state), finer_gamma)
        self._nearby = chosen.nearby
        if chosen.nearby is None and chosen.kernel is not None:  # once for all orders
            random = check_random(settings.random_state)
            self._nearby = Nearby.drawn(chosen.kernel, self.vertices.data, SAMPLE, random)
        return plan_exact(settings, self.vertices, self.vertices.n, chosen)

    def at(self, order: Auto, scalings: Sequence[bool | str]) -> list[Found]:
        vertices = Vertices.as_they_are(self.vertices.data, self.vertices.weights, given=self.vertices.given)
        if isinstance(order, str):  # the order that the data ask for: a fit of its own
            planned = Planned(self._planned(self.plan.settings, order), vertices, nearby=self._nearby)
            source = ArrayRows(vertices.data, vertices.weights)
            fit = solve_exact(planned, source, check_random(self.plan.settings.random_state), self.progress)
        else:
            solved = self._solved(order)
            fit = ExactFit(self.plan, self._search.prepared, solved, nearby=self._nearby, points=self._points)
        found = []
        for scaled in scalings:
            own = replace(fit, plan=_scaling(fit.plan, scaled))
            assignment, _ = assign_exact(own, self.plan.settings.n_groups)
            labels = assignment.labels
            if len(labels) < vertices.n:  # rows that were left out are as new ones
                fitted = ExactFitted.of(own, assignment)
                labels = fitted.labels_of_vertices(vertices.data, fit.prepared.vertices.index, fit.plan.settings.n_jobs)
            found.append(Found(fit.solved.eigenvalues, labels))
        return found

    def _solved(self, order: float) -> Solved:
        if self._together and not self._found:
            self._found = self._search.together(self._together, self.plan.spare)
            for solved in self._found.values():
                warn_unless_converged(solved.pairs)
        if order in self._found:
            return self._found[order]
        self._last = self._search.at(order, self._last)
        return self._last.result


class GraphCuts:
    """K of a neighbour graph."""

    def __init__(self, settings: Settings, vertices: Vertices, progress: Progress) -> None:
        self.vertices = vertices
        plan = plan_graph(settings, vertices, vertices.n)
        self._search = GraphSearch(plan, vertices, check_random(settings.random_state), progress)
        self.gram: GramOperator = self._search.connected.gram

    def at(self, order: Auto, scalings: Sequence[bool | str]) -> list[Found]:
        search = self._search
        parts = search.run().parts if isinstance(order, str) else search.at(order)
        found = []
        for scaled in scalings:
            fitted = GraphFitted(_scaling(search.plan, scaled), search.connected, self.vertices, parts)
            found.append(Found(fitted.eigenvalues, fitted.assign(self.vertices, parts).labels))
        return found


def _scaling(plan: Plan, row_normalize: bool | str) -> Plan:
    settings = plan.settings
    return replace(plan, settings=replace(settings, assigning=replace(settings.assigning, row_normalize=row_normalize)))


# Public


@dataclass(frozen=True)
class OrderPath:
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
    n_neighbors: int = 10,
    neighbor_weights: str = "auto",
    row_normalize: bool | str = "auto",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    gram: str = "auto",
    eigen_tol: Auto = "auto",
    n_init: int = 1,
    memory_limit: int | str = "auto",
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> OrderPath:
    """Cluster rows at several orders for little more than the price of one.

    K is made once. The order enters through the shrunken degrees alone, so one space of vectors, with its product by
    K, serves all orders (``spectral/many_orders.py``).

    Parameters
    ----------
    X : array, data frame or CSR matrix of shape (n_samples, n_features)
        With ``affinity="precomputed"``: similarities of shape (n_samples, n_samples).
    orders : sequence of numbers from 2 to infinity
        They are solved together, from the first one on.
    eigen_tol : float or "auto", default="auto"
        As in ``BicliqueSpectralClustering``, but "auto" is 1e-3 for a stored K too: plenty for labels.
    n_init : int, default=1
        Starts of k-means at every order, as in ``BicliqueSpectralClustering``.
    gamma : number or "auto", default="auto"
        As in ``BicliqueSpectralClustering`` at the lowest of the orders: all have one K.
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
    rows = read_rows(X, settings)
    weights = check_weights(sample_weight, rows.shape[0])
    check_clusters_fit(n_clusters, rows.shape[0], int((weights > 0).sum()))
    # Labels of one order must not depend on the others.
    settings = replace(settings, random_state=fixed_seed(random_state))
    if settings.solving.eigen_tol == "auto" and not settings.kernel.neighbors:
        settings = replace(settings, solving=replace(settings.solving, eigen_tol=QUICK_TOLERANCE))
    with single_threaded_blas(), Progress(bool(verbose)) as progress:
        vertices = find_vertices(settings, rows, weights)
        cuts = make_cuts(settings, vertices, wanted, progress, together=True)
        scaled = [settings.assigning.row_normalize]
        found = []
        for number, order in enumerate(wanted):
            found.append(cuts.at(order, scaled)[0])
            progress.share("orders", (number + 1) / len(wanted))
        return _path(wanted, found, cuts, vertices)


def _path(orders: list[float], found: list[Found], cuts: Cuts, vertices: Vertices) -> OrderPath:
    of_vertices = [one.labels for one in found]
    index = vertices.index
    if (index < 0).any():
        raise ParameterError(
            f"sample_weight is 0 in {int((index < 0).sum())} rows, which order_path cannot label: leave those rows out."
        )
    return OrderPath(
        np.array(orders),
        np.array([one.eigenvalues for one in found]),
        np.array([labels[index] for labels in of_vertices]),
        kept_shares(cuts.gram, of_vertices, vertices.weights),
        np.array([agreement(a, b, vertices.weights) for a, b in pairwise(of_vertices)], dtype=float),
    )


def kept_shares(gram: GramOperator, partitions: Sequence[IntArray], weights: FloatArray) -> FloatArray:
    """For every partition the mean over clusters of wᵀKw within / wᵀKw in all: one pass over K for all of them.

    Clusters of several partitions are multiplied once: orders often agree.
    """
    clusters = [[labels == j for j in range(labels.max(initial=0) + 1)] for labels in partitions]
    places = {one.tobytes(): one for of_one in clusters for one in of_one}
    indicators = weights[:, None] * np.column_stack(list(places.values()))
    product = gram.matmat(np.column_stack([weights, indicators]))
    kept = (indicators * product[:, 1:]).sum(axis=0) / (indicators.T @ product[:, 0])
    share = dict(zip(places, kept.tolist(), strict=True))
    return np.array([np.mean([share[one.tobytes()] for one in of_one]) for of_one in clusters])
