"""The exact way: kernel → Gram operator → cut → eigenpairs → embedding → labels, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError, DisconnectedWarning, ParameterError, RankWarning, warn_user
from biclique.fit.choose import (
    GRAPH_NEIGHBORS,
    Chosen,
    check_memory,
    choose_gram,
    choose_kernel,
    choose_precision,
    starting_order,
)
from biclique.fit.low_rank import choose_map, pool_size
from biclique.fit.neighborhood_cut import factored_pairs, map_of_vertices
from biclique.fit.settings import FACTORED, Settings
from biclique.gram.by_name import GRAMS
from biclique.gram.dense import DenseGram
from biclique.gram.factored import FactoredGram
from biclique.gram.operator import GramOperator
from biclique.gram.sparse import NeighborGram, SparseGram
from biclique.gram.spread import SpreadTiles
from biclique.gram.tiled import TiledGram
from biclique.gram.torch_gram import TorchGram
from biclique.multiway import SymmetricGram
from biclique.neighbors.index import members_of, without_loops
from biclique.progress import Progress
from biclique.rows.array import RowSource, Vertices, distinct_drawn
from biclique.runtime.arguments import check_random
from biclique.runtime.draws import draw_by_permutation, draw_numbers
from biclique.runtime.namespace import moved, on_host, padded, unit_rows
from biclique.spectral.alternatives import scipy_eigenpairs
from biclique.spectral.assign import assign_in_place, one_each
from biclique.spectral.components import grouped, parted_eigenpairs
from biclique.spectral.cut import NULL_EIGENVALUE, Extension, NormalizedCut
from biclique.spectral.multigrid import graph_eigenpairs
from biclique.spectral.rounding import Assignment, LargestCoordinate, weighted_means
from biclique.spectral.solver import (
    EigenResult,
    block_columns,
    dense_eigenpairs,
    solves_directly,
    top_eigenpairs,
    warn_about_clipped,
    warn_about_null_columns,
    warn_unless_converged,
)
from biclique.spectral.start import start_from_few

QUICK_TOLERANCE = 1e-3
"""Angle to the true eigenspace that ``eigen_tol="auto"`` asks for tiles and graphs: plenty for labels."""

FINE_TOLERANCE = 1e-8
"""The same for a stored K."""

MAX_PASSES = 100
"""Most passes of the eigenvector solver over K."""

DECOMPOSED = 2_048
"""Up to so many rows the matrix is decomposed if passes do not find the eigenpairs (long chains)."""

ROWS_A_PASS = 20
"""For a stored K, a pass for so many rows is enough before that: a decomposition takes about as many."""

START_FROM = 30_000
"""With tiles of this many rows and more, the solver starts from the eigenvectors of a sample."""

START_ROWS = 2_048
"""Rows of that sample."""

DEVICE_START_FROM = 400_000
"""The same on a device."""

DEVICE_START_ROWS = 8_192
"""Rows of the sample on a device."""

CHOICE_ROWS = 4_096
"""Rows from which the bandwidth is chosen on a device: there a search for equal rows would take as long as the fit."""


def solve_cut(
    cut: NormalizedCut,
    k: int,
    random: np.random.RandomState,
    progress: Progress,
    *,
    solver: str | None = None,
    tol: float = FINE_TOLERANCE,
    max_passes: int = MAX_PASSES,
    keep_space: bool = False,
) -> EigenResult:
    """The k leading eigenpairs of B, by the solver that was asked for."""
    noise, n = cut.gram.noise, cut.shape[0]
    if k < 1:
        return EigenResult.none(cut.trivial)
    if solver in ("arpack", "lobpcg"):
        return scipy_eigenpairs(
            cut,
            k,
            solver,
            tol=tol,
            max_iter=max_passes,
            start=cut.take_start()[0],
            deflate=cut.trivial,
            random_state=random,
            noise=noise,
        )
    worth = n // ROWS_A_PASS if cut.gram.passes_are_cheap else max(max_passes, MAX_PASSES)
    if n > DECOMPOSED:
        worth = max_passes + 1
    start, image = cut.take_start()
    found = top_eigenpairs(
        cut,
        k,
        tol=tol,
        max_iter=min(max_passes, worth),
        noise=noise,
        start=start,
        start_image=image,
        deflate=cut.trivial,
        random_state=random,
        report=progress.passed,
        keep_space=keep_space,
    )
    if found.converged or found.n_passes < worth:
        return found
    return replace(dense_eigenpairs(cut, k, cut.trivial), n_passes=found.n_passes + 1)


@dataclass(frozen=True)
class CutEmbedding:
    """A cut at an order with its eigenpairs, and the embedding made of them."""

    cut: NormalizedCut
    order: float
    pairs: EigenResult
    extension: Extension
    rows: FloatArray  # (n, n_columns), the trivial column first
    data: Rows | None
    """The vertices as rows of the table, if they are."""
    eigenvalues: FloatArray  # (n_columns − 1,)
    residuals: FloatArray
    parts: IntArray | None = None
    """The connected component of every row, if there are several."""
    clipped: int = 0
    """Eigenvalues that were negative and are taken as 0: columns of zeros."""
    lowest: float = 0.0
    """The lowest of these, as a share of the largest."""

    def warn(self, settings: Settings) -> None:
        """Say what is wrong with connected components and eigenpairs."""
        parts, pairs, n, n_clusters = self.parts, self.pairs, self.rows.shape[0], settings.n_groups
        if parts is not None and parts.max() + 1 > n_clusters:
            sizes = np.sort(np.bincount(parts, self.cut.weights))[::-1]
            shown = ", ".join(f"{size:g}" for size in sizes[:5]) + (", …" if len(sizes) > 5 else "")
            warn_user(
                f"the graph has {len(sizes)} connected components ({shown} of {n} rows), more than the {n_clusters} "
                "clusters that were asked for: they are grouped whole, so that nothing is cut. Ask for more clusters, "
                "or connect the graph (a larger n_neighbors).",
                DisconnectedWarning,
            )
        informative = self.extension.informative
        warn_unless_converged(pairs)
        negative = int((pairs.values[informative] < 0).sum())
        if negative:
            warn_user(
                f"{negative} of {len(pairs.values)} eigenvalues are negative (lowest {pairs.values.min():.2g}): the "
                "kernel's contraction is indefinite, and those columns set apart what is similar; ask for fewer "
                "clusters, or use another affinity or order.",
                RankWarning,
            )
        warn_about_clipped(self.clipped, len(pairs.values), self.lowest, "the cut")
        if n >= (settings.n_clusters or 0):  # fewer rows than clusters have a warning of their own
            warn_about_null_columns(informative, settings.n_columns)


class ExactCuts:
    """K of some rows, and its cut at one order after the other: what one order finds starts the next."""

    def __init__(
        self,
        settings: Settings,
        vertices: Vertices,
        gram: GramOperator,
        chosen: Chosen,
        orders: Sequence[float],
        random: np.random.RandomState,
        progress: Progress,
        *,
        probe: FloatArray | None = None,
    ) -> None:
        self.settings, self.vertices, self.gram, self.chosen = settings, vertices, gram, chosen
        self.orders, self.random, self.progress, self.probe = tuple(orders), random, progress, probe
        self.n_columns = settings.n_columns
        self.n_vectors = min(self.n_columns, gram.n) - 1
        quick = chosen.kernel is not None and not gram.passes_are_cheap and settings.precision != "float64"
        self.tol = settings.tolerance(QUICK_TOLERANCE if quick else FINE_TOLERANCE)
        self.graph_tol = settings.tolerance(QUICK_TOLERANCE)
        self._part_seed = int(random.randint(2**31)) if on_host(gram.like) else 0

    @classmethod
    def of_rows(
        cls,
        settings: Settings,
        source: RowSource,
        vertices: Vertices,
        random: np.random.RandomState,
        progress: Progress,
        orders: Sequence[float] | None = None,
    ) -> ExactCuts:
        """K of rows in memory, stored as ``choose_gram`` says; by default at the orders that were asked for."""
        n, n_jobs = vertices.n, settings.n_jobs
        if settings.symmetric and vertices.given and (vertices.index < 0).any():
            raise DataError(
                "modelling='symmetric' with affinity='precomputed' cannot label rows of weight 0, since κ(y, y) of "
                "rows outside the fit is not known: leave those rows and columns out of the matrix."
            )
        orders = settings.orders_for(n) if orders is None else tuple(orders)
        name, reason = choose_gram(settings, source, n)
        kernel, gamma = choose_kernel(settings, vertices, random, source.columns)
        precision = "float64"
        if kernel is not None:
            precision = choose_precision(settings, name, kernel, vertices.data)
        chosen = Chosen(name, reason, n, kernel, gamma, source.columns, precision=precision)
        check_memory(settings, name, vertices.data, n, chosen.dtype)
        tick = progress.tick if progress.enabled else None
        gram: GramOperator
        if settings.kernel.neighbors:
            gram = neighbor_gram(settings, vertices, progress, random)
        elif settings.kernel.neighborhoods:
            found = map_of_vertices(settings, source.columns, vertices, random)
            gram = FactoredGram(found, vertices.data, n_jobs=n_jobs, tick=tick)
            chosen = replace(chosen, rank=found.size, n_neighbors=found.n_neighbors)
        elif kernel is None:
            K = vertices.data
            gram = DenseGram(K, n_jobs=n_jobs) if isinstance(K, np.ndarray) else SparseGram(K, n_jobs=n_jobs)
        elif name in FACTORED:
            some = draw_by_permutation(n, pool_size(settings.rank), random)
            approximate, error = choose_map(settings, chosen, orders[0], vertices.some(some), random)
            gram = FactoredGram(approximate, vertices.data, n_jobs=n_jobs, tick=tick)
            chosen = replace(chosen, rank=approximate.size, error=error)
        else:
            gram = GRAMS[name](kernel, vertices.data, dtype=chosen.dtype, n_jobs=n_jobs, tick=tick)
            gram.weigh(vertices.weights)  # an error is measured as if all rows counted the same
            chosen = replace(chosen, error=gram.error)
        probe: FloatArray | None = None
        k = min(settings.n_columns, n) - 1
        if k > 0 and (settings.eigen_solver in ("arpack", "lobpcg") or not solves_directly(n, k)):
            probe = random.standard_normal((n, block_columns(k, n)))
            if kernel is not None and name in GRAMS and n >= START_FROM and not gram.passes_are_cheap:
                make = partial(GRAMS[name], kernel, dtype=chosen.dtype, n_jobs=n_jobs)
                seed = int(random.randint(2**31))
                probe = _from_few(probe, make, vertices.data, vertices.weights, orders[0], START_ROWS, seed)
        if source.spread is not None:
            gram = SpreadTiles(cast("TiledGram", gram), source.spread)
        return cls(settings, vertices, gram, chosen, orders, random, progress, probe=probe)

    @classmethod
    def on_device(
        cls, settings: Settings, source: RowSource, random: np.random.RandomState, progress: Progress
    ) -> ExactCuts:
        """K of all rows on a device, in tiles; a few thousand come to the host, from which the bandwidth is chosen.

        Equal rows are not made one.
        """
        n = int(source.held.shape[0])
        if source.n_counted != n:
            raise ParameterError("sample_weight of 0 works without device=: leave those rows out, and predict them.")
        pool = distinct_drawn(*source.draw(CHOICE_ROWS, np.random.RandomState(random.randint(2**31))))
        kernel, gamma = choose_kernel(settings, pool, random, None)
        if kernel is None:
            raise TypeError("a device computes K of a kernel")
        _, reason = choose_gram(settings, source, n)
        X = source.placed()
        precision = "float32" if settings.precision == "auto" else settings.precision
        facts: dict[str, Any] = {"device": str(source.device), "precision": precision}
        gram = TorchGram(
            kernel, X, tick=progress.tick if progress.enabled else None, owned=X is not source.held, **facts
        )
        weights = np.ones(n) if source.weights is None else source.weights
        orders = settings.orders_for(pool.n)
        probe, k = None, min(settings.n_columns, n) - 1
        if k > 0 and not solves_directly(n, k):
            seed = int(random.randint(2**31))
            probe = gram.normal((n, block_columns(k, n)), seed)
            if n >= DEVICE_START_FROM:
                make = partial(TorchGram, kernel, **facts)
                probe = _from_few(probe, make, X, weights, orders[0], DEVICE_START_ROWS, seed)
        chosen = Chosen(
            gram.name,
            f"{reason} by {gram.engine}",
            n,
            kernel,
            gamma,
            precision=precision if precision == "fast" else str(gram.dtype),
        )
        everyone: IntArray = np.arange(n)  # the operator holds what it needs of the rows
        vertices = Vertices(np.empty((0, X.shape[1])), weights, everyone, np.empty(0), everyone)
        return cls(settings, vertices, gram, chosen, orders, random, progress, probe=probe)

    def at(self, order: float, last: CutEmbedding | None = None) -> CutEmbedding:
        """The cut at an order, from what the one before it found; the first pass multiplies the probe too."""
        settings, vertices = self.settings, self.vertices
        if settings.symmetric:
            # The contraction already has the order in it: what is left is its ordinary normalised cut.
            gram = SymmetricGram(self.gram, int(order), vertices.weights)
            cut = NormalizedCut(gram, 2, vertices.weights, self.probe, vertices.numbers)
            cut.n_passes += 1  # the one for the degrees of K
        elif last is None:
            cut = NormalizedCut(self.gram, order, vertices.weights, self.probe, vertices.numbers)
        else:
            cut = last.cut.at_order(order, last.pairs.space, block_columns(self.n_vectors, self.gram.n))
        parts = self.parts if order == 2 else None
        if parts is not None and parts.max() > 0:
            pairs = self._solve_parts(cut, parts)
        else:
            parts, pairs = None, self.solve_connected(cut, self.n_vectors, self.random)
        clipped, lowest = 0, 0.0
        if settings.kernel.takes_gaps and not settings.symmetric:  # gaps can make K indefinite
            clipped = int((pairs.values < -NULL_EIGENVALUE * cut.gram.noise).sum())
            lowest = float(pairs.values.min(initial=0.0))  # the largest is the trivial one, 1
            pairs = replace(pairs, values=np.maximum(pairs.values, 0.0))
        extension, rows = Extension.fit(cut, pairs, cut.gram.noise)
        m = self.n_columns
        values, residuals = padded(pairs.values, m - 1), padded(pairs.residuals, m - 1)
        data = None if vertices.given or not on_host(cut.like) else vertices.data
        return CutEmbedding(
            cut, order, pairs, extension, padded(rows, m), data, values, residuals, parts, clipped, lowest
        )

    @cached_property
    def parts(self) -> IntArray | None:
        """The connected component of every row, for a sparse K or a hypergraph; None for any other."""
        return None if self.n_vectors < 1 or self.settings.symmetric else self.gram.parts()

    def solve_connected(self, cut: NormalizedCut, k: int, random: np.random.RandomState) -> EigenResult:
        """The eigenpairs of the whole cut, or of that of a connected component."""
        solver = self.settings.eigen_solver
        phi = cut.gram.sparse_factor() if k > 0 else None
        if phi is not None:
            return factored_pairs(cut, phi, k, self.graph_tol)
        multigrid = solver in (None, "auto", "amg") and not self.settings.symmetric
        if k > 0 and multigrid and cut.gram.graph() is not None:
            parts = self.parts if cut.gram is self.gram else None
            if parts is None or parts.max() == 0:
                return graph_eigenpairs(
                    cut, k, tol=self.graph_tol, max_iter=MAX_PASSES, random_state=random, report=self.progress.passed
                )
        keep = len(self.orders) > 1  # another order may start from what this one found
        return solve_cut(cut, k, random, self.progress, solver=solver, tol=self.tol, keep_space=keep)

    def _solve_parts(self, cut: NormalizedCut, parts: IntArray) -> EigenResult:
        """The eigenpairs of connected components; see ``spectral/components.py``."""
        volumes = cut.weights * cut.shrunken
        k = min(self.settings.n_groups, self.n_columns)
        if parts.max() + 1 >= k:
            parts = grouped(parts, volumes, k)[parts]

        def solve(members: IntArray, wanted: int) -> EigenResult:
            own = cut.restricted(self.gram.restricted(members), members)
            return self.solve_connected(own, wanted, np.random.RandomState(self._part_seed))

        found = parted_eigenpairs(cut, parts, members_of(parts), self.n_vectors, solve)
        cut.take_start()  # of which nothing is needed any more
        return found


def _from_few(
    probe: FloatArray,
    make: Callable[[Rows], GramOperator],
    X: Rows,
    weights: FloatArray,
    order: float,
    n_few: int,
    seed: int,
) -> FloatArray:
    """A start from the cut of a sample of rows."""
    some = draw_numbers(X.shape[0], n_few, np.random.RandomState(seed))
    few = X[some] if on_host(X) else X[moved(some, X)]
    return start_from_few(probe, make, few, X, order, weights[some], seed, weights)


def neighbor_gram(
    settings: Settings, vertices: Vertices, progress: Progress, random: np.random.RandomState
) -> NeighborGram:
    """scikit-learn's graph of nearest neighbours, ½ (A + Aᵀ) without loops."""
    n_neighbors, n_jobs = settings.n_neighbors or GRAPH_NEIGHBORS, settings.n_jobs
    if n_neighbors > max(vertices.n, GRAPH_NEIGHBORS):
        raise ParameterError(
            f"n_neighbors={n_neighbors} is more than the {vertices.n} distinct rows there are: use fewer, "
            f"such as {GRAPH_NEIGHBORS}."
        )
    if vertices.given:
        graph = NeighborGram.from_graph(vertices.data, n_neighbors, n_jobs=n_jobs)
    else:
        tick = progress.tick if progress.enabled else None
        graph = NeighborGram.from_rows(vertices.data, n_neighbors, n_jobs=n_jobs, tick=tick, random_state=random)
    return graph.with_graph(without_loops(graph.K))


# Labels


def assign(settings: Settings, found: CutEmbedding, n_clusters: int, rows: FloatArray | None = None) -> Assignment:
    """The labels of the vertices, by the assigner that is asked for; ``rows`` if they were scaled already."""
    if rows is None:
        rows = unit_rows(found.rows) if settings.scales_rows else found.rows
    if rows.shape[0] <= n_clusters and on_host(rows):
        return one_each(rows, found.cut if settings.needs_cut else None).contiguous()
    if found.parts is not None and found.parts.max() + 1 >= n_clusters and not settings.needs_cut:
        return _whole_parts(found, found.parts, n_clusters)
    return assign_in_place(
        settings.assign_labels,
        rows,
        found.cut.weights,
        n_clusters,
        cut=found.cut,
        n_init=settings.n_init,
        random_state=check_random(settings.random_state),
        order=None if found.data is None else starting_order(found.data),
    ).contiguous()


def _whole_parts(found: CutEmbedding, parts: IntArray, n_clusters: int) -> Assignment:
    """At least k connected components: they are grouped whole, and new rows go where their direction is."""
    weights = found.cut.weights
    labels = grouped(parts, weights * found.cut.shrunken, n_clusters)[parts]
    means, _ = weighted_means(unit_rows(found.rows), weights, labels, n_clusters)
    return Assignment(labels, LargestCoordinate(unit_rows(means).T, absolute=False)).contiguous()
