"""K held as planned: the Gram operator of a fit's rows, on the host or on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DataError
from biclique.fit.low_rank import check_rank, choose_map, pool_size
from biclique.fit.neighborhood_cut import map_of_vertices
from biclique.fit.plan import GRAPH_NEIGHBORS, Plan, make_gram
from biclique.fit.settings import Settings
from biclique.gram import DenseGram, FactoredGram, GramOperator, MeasuredError, NeighborGram, SparseGram, TorchGram
from biclique.neighbors.index import without_loops
from biclique.progress import Progress
from biclique.rows.array import Pool, RowSource, Vertices
from biclique.runtime import Tick, draw_by_permutation, draw_numbers
from biclique.runtime.namespace import moved
from biclique.spectral.solver import BASIS_BLOCKS, block_columns
from biclique.spectral.start import start_from_few


@dataclass(frozen=True)
class Prepared:
    """The Gram operator of the rows, ready to be cut at any order."""

    vertices: Vertices
    base: GramOperator
    random: np.random.RandomState
    symmetric: bool = False
    probe: FloatArray | None = None
    """A start for the solver, multiplied in the pass that gives the degrees."""
    basis_blocks: int = BASIS_BLOCKS
    error: MeasuredError | None = None
    """Of an approximate K."""


def hold(plan: Plan, vertices: Vertices, random: np.random.RandomState, progress: Progress) -> Prepared:
    """Hold K as planned; the first of the plan's orders is the first one that will be asked for."""
    symmetric = plan.settings.cut.symmetric
    if symmetric and vertices.given and (vertices.index < 0).any():
        raise DataError(
            "modelling='symmetric' with affinity='precomputed' cannot label rows of weight 0, since κ(y, y) of "
            "rows outside the fit is not known: leave those rows and columns out of the matrix."
        )
    base, error = _hold(plan, vertices, random, progress)
    probe: FloatArray | None = None
    if plan.iterates:
        probe = random.standard_normal((vertices.n, block_columns(plan.n_vectors, vertices.n)))
        if plan.kernel is not None and plan.start_rows:
            seed = int(random.randint(2**31))
            some = draw_numbers(vertices.n, plan.start_rows, np.random.RandomState(seed))
            few = make_gram(
                plan.gram,
                plan.kernel,
                vertices.data[some],
                dtype=plan.dtype,
                n_jobs=plan.settings.n_jobs,
                memory_limit=plan.memory_limit,
            )
            weights = vertices.weights
            probe = start_from_few(probe, few, vertices.data, plan.orders[0], weights[some], seed, weights)
    return Prepared(vertices, base, random, symmetric, probe, plan.basis_blocks, error)


def given_gram(K: Rows, n_jobs: int | None) -> GramOperator:
    """K that was given, dense or sparse."""
    return SparseGram(K, n_jobs=n_jobs) if sparse.issparse(K) else DenseGram(K, n_jobs=n_jobs)


def neighbor_gram(
    settings: Settings, vertices: Vertices, tick: Tick | None, random: np.random.RandomState
) -> NeighborGram:
    """scikit-learn's graph of nearest neighbours, ½ (A + Aᵀ) without loops."""
    n_neighbors, n_jobs = settings.holding.n_neighbors or GRAPH_NEIGHBORS, settings.n_jobs
    if vertices.given:
        graph = NeighborGram.from_graph(vertices.data, n_neighbors, n_jobs=n_jobs)
    else:
        graph = NeighborGram.from_rows(vertices.data, n_neighbors, n_jobs=n_jobs, tick=tick, random_state=random)
    return graph.with_graph(without_loops(graph.K))


def _hold(
    plan: Plan, vertices: Vertices, random: np.random.RandomState, progress: Progress
) -> tuple[GramOperator, MeasuredError | None]:
    tick = progress.tick if progress.enabled else None
    n_jobs = plan.settings.n_jobs
    if plan.settings.kernel.neighbors:
        return neighbor_gram(plan.settings, vertices, tick, random), None
    if plan.settings.kernel.neighborhoods:
        return FactoredGram(
            map_of_vertices(plan.settings, vertices, random), vertices.data, n_jobs=n_jobs, tick=tick
        ), None
    if plan.kernel is None:
        return given_gram(vertices.data, n_jobs), None
    if plan.rank is not None:
        check_rank(plan.settings.holding.rank, vertices.n, what="distinct rows")
        found = choose_map(plan, _pool(plan, vertices, random), random)
        return FactoredGram(found.map, vertices.data, n_jobs=n_jobs, tick=tick), found.error
    gram = make_gram(
        plan.gram,
        plan.kernel,
        vertices.data,
        dtype=plan.dtype,
        n_jobs=n_jobs,
        memory_limit=plan.memory_limit,
        tick=tick,
    )
    if gram.error is not None:  # measured as if all rows counted the same
        gram.weigh(vertices.weights)
    return gram, gram.error


def _pool(plan: Plan, vertices: Vertices, random: np.random.RandomState) -> Pool:
    """Distinct rows from which a feature map is chosen."""
    chosen = draw_by_permutation(vertices.n, pool_size(plan.settings.holding.rank), random)
    weights = vertices.weights[chosen]
    return Pool(vertices.data[chosen], weights, np.arange(len(chosen)), weights)


def hold_on_device(
    plan: Plan, source: RowSource, weights: FloatArray, random: np.random.RandomState, progress: Progress
) -> Prepared:
    """K of all rows on a device; equal rows are not made one."""
    X, owned = source.placed()
    n, kernel = plan.rows, plan.kernel_of_rows
    facts: dict[str, Any] = {"device": plan.device, "precision": plan.precision}
    tick = progress.tick if progress.enabled else None
    gram = TorchGram(kernel, X, tick=tick, owned=owned, **facts)
    probe = None
    if plan.iterates:
        seed = int(random.randint(2**31))
        probe = gram.normal((n, plan.block), seed)
        if plan.start_rows:
            some = draw_numbers(n, plan.start_rows, np.random.RandomState(seed))
            few = TorchGram(kernel, X[moved(some, X)], **facts)
            probe = start_from_few(probe, few, X, plan.orders[0], weights[some], seed, weights)
    # The operator holds what it needs of the rows.
    everyone: IntArray = np.arange(n)
    vertices = Vertices(np.empty((0, X.shape[1])), weights, everyone, np.empty(0), everyone)
    return Prepared(vertices, gram, random, probe=probe)
