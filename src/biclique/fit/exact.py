"""The exact way: kernel → Gram operator → cut → eigenpairs → embedding → labels, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from biclique._typing import Device, FloatArray, IntArray, Rows
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
from biclique.fit.settings import Settings
from biclique.gram.by_name import GRAMS
from biclique.gram.dense import DenseGram
from biclique.gram.factored import FactoredGram
from biclique.gram.operator import GramOperator
from biclique.gram.sparse import NeighborGram, SparseGram
from biclique.gram.spread import SpreadTiles
from biclique.gram.tiled import TiledGram
from biclique.gram.torch_gram import TorchGram
from biclique.multiway import SymmetricGram
from biclique.neighbors.index import without_loops
from biclique.progress import Progress
from biclique.rows.array import RowSource, Vertices, distinct_drawn
from biclique.runtime.arguments import check_random
from biclique.runtime.draws import draw_by_permutation, draw_numbers
from biclique.runtime.namespace import on_host, padded, unit_rows
from biclique.runtime.threads import Tick
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
    if k < 1:
        return EigenResult.none(cut.trivial)
    start, image = cut.take_start()
    asked: dict[str, Any] = {"tol": tol, "noise": cut.gram.noise, "deflate": cut.trivial, "random_state": random}
    asked |= {"start": start, "max_iter": max_passes}
    if solver in ("arpack", "lobpcg"):
        return scipy_eigenpairs(cut, k, solver, **asked)
    found = top_eigenpairs(cut, k, start_image=image, report=progress.passed, keep_space=keep_space, **asked)
    if found.converged or cut.shape[0] > DECOMPOSED:
        return found
    return replace(dense_eigenpairs(cut, k, cut.trivial), n_passes=found.n_passes + 1)


@dataclass(frozen=True)
class CutEmbedding:
    """A cut with its eigenpairs, and the embedding made of them."""

    cut: NormalizedCut
    pairs: EigenResult
    extension: Extension
    rows: FloatArray  # (n, n_columns), the trivial column first
    data: Rows | None
    """The vertices as rows of the table, if they are."""
    parts: IntArray | None = None
    """The connected component of every row, if there are several."""

    @property
    def eigenvalues(self) -> FloatArray:
        """Of B, descending; zero if there are no more, (n_columns − 1,)."""
        return padded(self.extension.values, self.rows.shape[1] - 1)

    def warn(self, settings: Settings) -> None:
        """Say what is wrong with connected components and eigenpairs."""
        parts, values, n, n_clusters = self.parts, self.pairs.values, self.rows.shape[0], settings.n_groups
        if parts is not None and parts.max() + 1 > n_clusters:
            sizes = np.sort(np.bincount(parts, self.cut.weights))[::-1]
            shown = ", ".join(f"{size:g}" for size in sizes[:5]) + (", …" if len(sizes) > 5 else "")
            warn_user(
                f"the graph has {len(sizes)} connected components ({shown} of {n} rows), more than the {n_clusters} "
                "clusters that were asked for: they are grouped whole, so that nothing is cut. Ask for more clusters, "
                "or connect the graph (a larger n_neighbors).",
                DisconnectedWarning,
            )
        warn_unless_converged(self.pairs)
        lowest = float(values.min(initial=0.0))  # as a share of the trivial eigenvalue, 1, which is the largest
        negative = int((values < -NULL_EIGENVALUE * self.cut.gram.noise).sum())
        if clips(settings):
            warn_about_clipped(negative, len(values), lowest, "the cut")
        elif negative:
            warn_user(
                f"{negative} of {len(values)} eigenvalues are negative (lowest {lowest:.2g}): the "
                "kernel's contraction is indefinite, and those columns set apart what is similar; ask for fewer "
                "clusters, or use another affinity or order.",
                RankWarning,
            )
        if n >= (settings.n_clusters or 0):  # fewer rows than clusters have a warning of their own
            warn_about_null_columns(self.extension.informative, settings.n_columns)


def clips(settings: Settings) -> bool:
    """Whether negative eigenvalues are taken as 0, columns of zeros: gaps can make K indefinite."""
    return settings.kernel.takes_gaps and not settings.symmetric


@dataclass
class ExactCuts:
    """K of some rows, and its cut at one order after the other: what one order finds starts the next."""

    settings: Settings
    vertices: Vertices
    gram: GramOperator
    chosen: Chosen
    orders: Sequence[float]
    random: np.random.RandomState
    progress: Progress
    probe: FloatArray | None = None
    """A start for the solver, (n, b)."""

    def __post_init__(self) -> None:
        gram, settings = self.gram, self.settings
        self.n_vectors = min(settings.n_columns, gram.n) - 1
        quick = self.chosen.kernel is not None and not gram.passes_are_cheap and settings.precision != "float64"
        self.tol = settings.tolerance(QUICK_TOLERANCE if quick else FINE_TOLERANCE)
        self.graph_tol = settings.tolerance(QUICK_TOLERANCE)
        self._part_seed = int(self.random.randint(2**31)) if on_host(gram.like) else 0

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
        """K of rows, stored as ``choose_gram`` says; by default at the orders that were asked for.

        On a device the bandwidth is chosen from a few thousand rows, which come to the host.
        """
        if settings.symmetric and vertices.given and (vertices.index < 0).any():
            raise DataError(
                "modelling='symmetric' with affinity='precomputed' cannot label rows of weight 0, since κ(y, y) of "
                "rows outside the fit is not known: leave those rows and columns out of the matrix."
            )
        device, pool = source.device, vertices
        if device is not None:
            pool = distinct_drawn(*source.draw(CHOICE_ROWS, np.random.RandomState(random.randint(2**31))))
        orders = settings.orders_for(pool.n) if orders is None else orders
        kernel, gamma = choose_kernel(settings, pool, random, source.columns)
        chosen = Chosen(*choose_gram(settings, source, vertices.n), vertices.n, kernel, gamma, source.columns)
        tick = progress.tick if progress.enabled else None
        if device is None:
            gram, chosen, make = host_gram(settings, vertices, chosen, orders[0], random, tick)
        else:
            gram, chosen, make = device_gram(settings, source, vertices, chosen, tick)
        probe = draw_start(settings, vertices, gram, make, orders[0], random)
        if source.spread is not None:
            gram = SpreadTiles(cast("TiledGram", gram), source.spread)
        return cls(settings, vertices, gram, chosen, tuple(orders), random, progress, probe)

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
        clipped = replace(pairs, values=np.maximum(pairs.values, 0.0)) if clips(settings) else pairs
        extension, rows = Extension.fit(cut, clipped)
        data = None if vertices.given or not on_host(cut.like) else vertices.data
        return CutEmbedding(cut, pairs, extension, padded(rows, settings.n_columns), data, parts)

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
        k = min(self.settings.n_groups, self.settings.n_columns)
        if parts.max() + 1 >= k:
            parts = grouped(parts, volumes, k)[parts]
        cut.take_start()  # which is of the whole
        return parted_eigenpairs(
            cut,
            parts,
            self.n_vectors,
            lambda own, wanted: self.solve_connected(own, wanted, np.random.RandomState(self._part_seed)),
        )

    def assign(self, found: CutEmbedding, rows: FloatArray | None = None) -> Assignment:
        """The labels of the vertices, by the assigner that is asked for; ``rows`` if they were scaled already."""
        settings, k = self.settings, self.settings.n_groups
        if rows is None:
            rows = unit_rows(found.rows) if settings.scales_rows else found.rows
        if rows.shape[0] <= k and on_host(rows):
            return one_each(rows, found.cut if settings.needs_cut else None).contiguous()
        if found.parts is not None and found.parts.max() + 1 >= k and not settings.needs_cut:
            return _whole_parts(found, found.parts, k)
        return assign_in_place(
            settings.assign_labels,
            rows,
            found.cut.weights,
            k,
            cut=found.cut,
            n_init=settings.n_init,
            random_state=check_random(settings.random_state),
            order=None if found.data is None else starting_order(settings, found.data),
        ).contiguous()


def _whole_parts(found: CutEmbedding, parts: IntArray, n_clusters: int) -> Assignment:
    """At least k connected components: they are grouped whole, and new rows go where their direction is."""
    weights = found.cut.weights
    labels = grouped(parts, weights * found.cut.shrunken, n_clusters)[parts]
    means, _ = weighted_means(unit_rows(found.rows), weights, labels, n_clusters)
    return Assignment(labels, LargestCoordinate(unit_rows(means).T, absolute=False)).contiguous()


# K, and what makes K of other rows in the same way, if every pass computes it anew

Make = Callable[[Rows], GramOperator]
Made = tuple[GramOperator, Chosen, Make | None]


def draw_start(
    settings: Settings,
    vertices: Vertices,
    gram: GramOperator,
    make: Make | None,
    order: float,
    random: np.random.RandomState,
) -> FloatArray | None:
    """A random start for the solver, (n, b), improved by a few of many rows if passes are slow; None for few rows."""
    n, host = vertices.n, on_host(gram.like)
    k = min(settings.n_columns, n) - 1
    if k < 1 or solves_directly(n, k):
        return None
    shape = n, block_columns(k, n)
    if host:
        probe = random.standard_normal(shape)
    else:
        probe = cast("TorchGram", gram).normal(shape, int(random.randint(2**31)))
    least, n_few = (START_FROM, START_ROWS) if host else (DEVICE_START_FROM, DEVICE_START_ROWS)
    if make is None or n < least or gram.passes_are_cheap:
        return probe
    seed = int(random.randint(2**31))
    some = draw_numbers(n, n_few, np.random.RandomState(seed))
    return start_from_few(probe, gram, make, vertices.data, some, vertices.weights, order, seed)


def device_gram(settings: Settings, source: RowSource, vertices: Vertices, chosen: Chosen, tick: Tick | None) -> Made:
    """K of all rows on a device, in tiles."""
    if chosen.kernel is None:
        raise TypeError("a device computes K of a kernel")
    precision = "float32" if settings.precision == "auto" else settings.precision
    make = partial(TorchGram, chosen.kernel, device=cast("Device", source.device), precision=precision)
    gram = make(vertices.data, tick=tick, owned=vertices.data is not source.held)
    reason = f"{chosen.gram_reason} by {gram.engine}"
    return (
        gram,
        replace(chosen, gram_reason=reason, precision="fast" if gram.precision == "fast" else str(gram.dtype)),
        make,
    )


def host_gram(
    settings: Settings,
    vertices: Vertices,
    chosen: Chosen,
    order: float,
    random: np.random.RandomState,
    tick: Tick | None,
) -> Made:
    """K of distinct rows or of a given matrix, refused before it is made if it does not fit the memory."""
    X, kernel, name, n_jobs = vertices.data, chosen.kernel, chosen.gram, settings.n_jobs
    if kernel is not None:
        chosen = replace(chosen, precision=choose_precision(settings, name, kernel, X))
    check_memory(settings, name, X, vertices.n, chosen.dtype)
    if settings.kernel.neighbors:
        return neighbor_gram(settings, vertices, random, tick), chosen, None
    if kernel is not None and name in GRAMS:
        make = partial(GRAMS[name], kernel, dtype=chosen.dtype, n_jobs=n_jobs)
        gram = make(X, tick=tick)
        gram.weigh(vertices.weights)  # an error is measured as if all rows counted the same
        return gram, replace(chosen, error=gram.error), make
    if settings.kernel.neighborhoods:
        near = map_of_vertices(settings, chosen.columns, vertices, random)
        chosen = replace(chosen, rank=near.size, n_neighbors=near.n_neighbors)
        return FactoredGram(near, X, n_jobs=n_jobs, tick=tick), chosen, None
    if kernel is None:
        return DenseGram(X, n_jobs=n_jobs) if isinstance(X, np.ndarray) else SparseGram(X, n_jobs=n_jobs), chosen, None
    some = draw_by_permutation(vertices.n, pool_size(settings.rank), random)
    found, error = choose_map(settings, chosen, order, vertices.some(some), random)
    return FactoredGram(found, X, n_jobs=n_jobs, tick=tick), replace(chosen, rank=found.size, error=error), None


def neighbor_gram(
    settings: Settings, vertices: Vertices, random: np.random.RandomState, tick: Tick | None
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
        order = starting_order(settings, vertices.data)
        graph = NeighborGram.from_rows(
            vertices.data, n_neighbors, n_jobs=n_jobs, tick=tick, random_state=random, order=order
        )
    graph.K = without_loops(graph.K)
    return graph
