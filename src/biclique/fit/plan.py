"""Plan: every decision of a fit, taken once and here, with its reason, before any large work; and Fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import Device, FloatArray, IntArray, Rows
from biclique.device.torch_tiles import check_device_kernel, check_device_precision, device_type
from biclique.exceptions import DataError, ParameterError
from biclique.features.maps import FEATURE_MAPS, factored_bytes
from biclique.fit.cost import Cost, device_bytes
from biclique.fit.low_rank import RANKS, check_map_on_device, check_rank, kind_of_map, pool_size
from biclique.fit.settings import FACTORED, Settings
from biclique.gram import GRAMS, GramOperator, MeasuredError, dense_bytes, given_bytes
from biclique.gram.fourier import TARGET, can_help, is_installed
from biclique.io import CHUNK_ROWS, listed
from biclique.kernels import (
    GAMMA_KERNELS,
    SAMPLE,
    HeldRows,
    Kernel,
    Nearby,
    bandwidth,
    check_rows_for_kernel,
)
from biclique.neighbors.index import search_bytes, uses_tree
from biclique.progress import format_seconds
from biclique.rows.array import Pool, RowSource, Vertices, distinct_given, distinct_rows, many_repeats
from biclique.rows.checks import check_clusters_fit
from biclique.runtime import Tick, data_bytes, draw_by_permutation, format_bytes, parse_memory_limit, require
from biclique.runtime.namespace import on_host
from biclique.spectral import (
    ASSIGNERS,
    BASIS_BLOCKS,
    DIRECT_BELOW,
    FEWEST_BLOCKS,
    NEIGHBOR_ORDERS,
    OrderRule,
    Seen,
    basis_bytes,
    block_columns,
    blocks_within,
    check_order,
    direct_bytes,
    solves_directly,
)

EXACT, FACTORED_WAY, GRAPH = "exact", "factored", "graph"
"""The ways: passes over K; three passes over the rows of a factored K; the parts of a neighbour graph."""

LOOKED_AT = 65_536
"""Rows that a plan without a fit looks at."""

CHOICE_ROWS = 4_096
"""Rows from which the bandwidth is chosen on a device: there a search for equal rows would take as long as the fit."""

BLOCK_ROWS = 4_096
USUAL_NEIGHBORS = 10
"""The default of n_neighbors: with fewer rows, all of them are neighbours."""

BYTES_PER_NEIGHBOR = 120
"""Of a graph while it is made, for every row and neighbour."""

GRAPH_TOLERANCE = 0.1
"""Residuals of eigenpairs of neighbour graphs, as a share of the eigengap."""

QUICK_TOLERANCE, FINE_TOLERANCE = 1e-3, 1e-8
"""Angles to the true eigenspace that ``eigen_tol="auto"`` asks for: the first is plenty for labels."""

START_FROM, START_ROWS = 30_000, 2_048
"""Tiles of this many rows and more: the solver starts from the eigenvectors of a sample of this size."""

DEVICE_START_FROM, DEVICE_START_ROWS = 400_000, 8_192
"""The same on a device."""


STORE_BELOW = 4096
"""Up to here a stored K (128 MiB) is quick to build and gives float64 throughout."""

FLOAT32_ERROR = 1e-3
"""Above this (generous) bound on the relative error of a value, ``precision="auto"`` computes tiles in float64."""

HOPELESS_ERROR = 1e-2
"""Above this one, float32 is refused even when asked for."""

FOURIER_FROM = 10_000
"""Rows from which FFTs overtake tiles in three columns; in two they do at some 3,000 (``benchmarks/fourier.py``)."""

EXACT_WORK = 6e11
"""Up to this much work K is exact: some 12 s on two cores, 110,000 rows in 16 dimensions."""

WORK_PER_SECOND = 5e10

FEW_EXACT_COLUMNS = 512


@dataclass(frozen=True)
class Plan:
    """Every decision of a fit, with its reason; printed, it explains the fit to a person.

    A plan that was made without a fit (``model.plan(X)``) has looked at some of the rows: ``gamma`` and ``rows`` are
    estimates then, and ``order`` and ``rank`` show what is assumed.
    """

    settings: Settings
    way: str
    rows: int
    """Rows that are fitted: the distinct ones, if equal rows are made one."""
    gram: str
    gram_reason: str
    memory_limit: int
    kernel: Kernel | None = None
    gamma: float | None = None
    gamma_reason: str = ""
    """Why γ is not that of its rule."""
    orders: tuple[float, ...] = ()
    """To try, from the first on."""
    order: float | None = None
    order_reason: str = ""
    rank: int | str | None = None
    """Of a factored K."""
    most_rank: int = RANKS[-1]
    """That fits the memory limit."""
    precision: str = "float64"
    n_vectors: int = 0
    iterates: bool = False
    """Whether eigenvectors come from passes rather than from one decomposition."""
    tolerance: float | None = None
    """Residuals, as a share of the eigengap."""
    basis_blocks: int = 0
    """Blocks of vectors that the solver keeps."""
    start_rows: int = 0
    """Rows whose eigenvectors the solver starts from; 0 is a random start."""
    bytes: int = 0
    device: str | None = None
    device_bytes: int = 0
    seconds: float | None = None
    error: MeasuredError | None = None
    """Of an approximate K."""
    changes: tuple[str, ...] = ()
    """What was decided anew after a look at the data, and why."""
    selected: str = ""
    """What a search chose, and why, if one was asked for."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of kernel values."""
        return np.dtype(np.float32 if self.precision == "fast" else self.precision)

    @property
    def kernel_of_rows(self) -> Kernel:
        """The kernel of a plan that needs one."""
        if self.kernel is None:
            raise TypeError(f"gram={self.gram!r} is of rows and a kernel, and this plan has no kernel")
        return self.kernel

    @property
    def block(self) -> int:
        """Vectors of one pass."""
        return block_columns(self.n_vectors, self.rows)

    @property
    def rule(self) -> str:
        """How the order is chosen, in words."""
        if not self.settings.cut.auto:
            return "as asked for"
        return f"the least of {', '.join(f'{order:g}' for order in self.orders)} that leaves no cluster of dust"

    @property
    def cost(self) -> Cost:
        """Time and memory."""
        return Cost(self.gram, self.rows, self.seconds or 0.0, self.bytes, self.device, self.device_bytes)

    def changed(self, reason: str) -> Plan:
        """A new plan, with the reason for it; without a reason, this one."""
        return replace(self, changes=(*self.changes, reason)) if reason else self

    @property
    def spare(self) -> int:
        """Bytes of the memory limit that the fit itself does not need."""
        return self.memory_limit - self.bytes

    def at_order(self, order: float, reason: str) -> Plan:
        """With the order that was taken, and why; another one than the first to try is a change."""
        other = self.settings.cut.auto and order != self.orders[0]
        why = f"order {order:g} instead of {self.orders[0]:g}: {reason}" if other else ""
        return replace(self, order=order, order_reason=reason).changed(why)

    def with_rows_as_they_are(self, reason: str) -> Plan:
        """A new plan in which rows of the embedding are not scaled before they are labelled."""
        assigning = replace(self.settings.assigning, row_normalize=False)
        return replace(self, settings=replace(self.settings, assigning=assigning)).changed(reason)

    def __str__(self) -> str:
        settings = self.settings
        similarity = settings.kernel.affinity if isinstance(settings.kernel.affinity, str) else "a kernel of your own"
        gamma = "" if self.gamma is None else f", gamma={self.gamma:.4g}"
        gamma += f" ({self.gamma_reason})" if self.gamma_reason else ""
        order = f"{self.order:g} ({self.order_reason})" if self.order is not None else self.rule
        lines = [
            f"{self.rows} rows, {settings.n_columns} columns of the embedding",
            f"similarity: {similarity}{gamma}, {self.precision}",
            f"gram={self.gram!r}: {self.gram_reason}",
            f"order: {order}",
        ]
        if self.rank is not None:
            lines.append(f"rank: {self.rank}" + (f" ({self.error})" if self.error is not None else ""))
        if self.way == FACTORED_WAY:
            lines.append("solver: one small matrix, three passes over the rows")
        elif self.iterates:
            start = f"from the eigenvectors of {self.start_rows} rows" if self.start_rows else "from random vectors"
            lines.append(f"solver: passes over K {start}, tolerance {self.tolerance:g} of the eigengap")
        else:
            lines.append("solver: one full decomposition")
        where = "" if self.device is None else f", {format_bytes(self.device_bytes)} on {self.device}"
        told = f"memory: {format_bytes(self.bytes)}{where}, limit {format_bytes(self.memory_limit)}"
        lines.append(told if self.seconds is None else f"{told}; about {self.cost.time}")
        if self.selected:
            lines.append(f"selected: {self.selected}")
        return "\n".join([*lines, *(f"changed: {reason}" for reason in self.changes)])


@dataclass(frozen=True)
class Planned:
    """A plan, and the rows that it was made from."""

    plan: Plan
    vertices: Vertices | None = None
    """All of them, if K is of distinct rows."""
    pool: Pool | None = None
    """Some of them."""
    nearby: Nearby | None = None
    """The vertices that γ is from."""


@dataclass(frozen=True)
class ChosenKernel:
    """The kernel with its γ; neither for a given matrix."""

    kernel: Kernel | None = None
    gamma: float | None = None
    reason: str = ""
    """Why γ is not that of its rule."""
    nearby: Nearby | None = None
    """The rows that it is from, if it is from some."""


Finer = Callable[[Settings, ChosenKernel, Vertices, Nearby, int], ChosenKernel]
"""A higher γ, if clusters of some rows would part neighbours. The number is a seed."""


def make_plan(
    settings: Settings,
    source: RowSource,
    random: np.random.RandomState,
    finer: Finer,
    looked_at: int | None = None,
) -> Planned:
    """Take every decision that settings, sizes and a look at the rows allow; refuse what cannot be done.

    A fit looks at all rows if equal ones are made one. ``looked_at`` is a number of rows that is enough for a plan
    without a fit: no full pass, no device.
    """
    way, choice = choose_way(settings, source)
    if source.in_memory and source.device is None and settings.kernel.of_rows:
        check_rows_for_kernel(settings.kernel.affinity, source.held)
    if way == FACTORED_WAY:
        return _plan_factored(settings, source, choice, random, finer)
    X, weights = source.held, source.weights
    if weights is None:
        weights = np.ones(X.shape[0])
    if source.device is not None:
        return _plan_device(settings, source, X, weights, source.device, random, finer)
    whole = X.shape[0]
    if looked_at is not None and whole > looked_at and not settings.kernel.given:
        X, weights = source.draw(looked_at, np.random.RandomState(0))
    vertices = find_vertices(settings, X, weights)
    n = vertices.n
    if X is not source.held:  # few distinct rows among many are all there are
        n = n if n < 0.5 * X.shape[0] else round(n / X.shape[0] * whole)
    if way == GRAPH:
        return Planned(plan_graph(settings, vertices, n), vertices)
    chosen = choose_kernel(settings, vertices, random, finer)
    nearby = None if chosen.nearby is None else chosen.nearby.without_pairs()
    return Planned(plan_exact(settings, vertices, n, chosen), vertices, nearby=nearby)


# Which way


def choose_way(settings: Settings, source: RowSource) -> tuple[str, Choice]:
    """How K is stored, as far as settings and sizes decide it; what cannot be done is refused here."""
    kernel, gram = settings.kernel, settings.holding.gram
    asked = Choice(gram, "as asked for")
    if source.device is not None:
        _check_device(settings, source.held, source.device)
        where = Choice(gram, f"as asked for, on {source.device}")
        return (FACTORED_WAY, where) if settings.holding.factored else (EXACT, asked)
    if not source.in_memory:
        return FACTORED_WAY, _choose_for_chunks(settings, source.n_columns)
    if kernel.neighbors:
        return GRAPH, asked
    if kernel.given or not settings.pointwise:
        return EXACT, asked
    limit = parse_memory_limit(settings.holding.memory_limit)
    choice = choose_gram(gram, _kernel_to_choose_by(settings, source), source.held.shape[0], source.held, limit)
    if choice.name not in FACTORED:
        return EXACT, choice
    if gram == "auto" and choice.name == "nystroem" and many_repeats(source.held):
        return EXACT, choice  # equal rows are fitted once: exact may do after all
    return FACTORED_WAY, choice


def _kernel_to_choose_by(settings: Settings, source: RowSource) -> Kernel:
    """The kernel; with a bandwidth from a few rows, if that decides how K is stored."""
    kernel = settings.kernel.kernel()
    rows = source.held
    n, d = rows.shape
    decides = settings.holding.gram == "auto" and n >= FOURIER_FROM and exact_work(kernel, n, rows) > EXACT_WORK
    if not decides or kernel.spectrum(d) is None:
        return kernel
    pool = Pool.of(*source.draw(CHOICE_ROWS, np.random.RandomState(0)))
    return choose_kernel(settings, pool.vertices, np.random.RandomState(0)).kernel or kernel


def barrier_to_chunks(settings: Settings) -> tuple[str, str] | None:
    """The parameter that needs rows in memory, and a value that does not; None where chunks will do."""
    if not settings.kernel.of_rows:
        return "affinity", "rbf"
    if settings.holding.device is not None:
        return "device", "None"
    if settings.holding.gram != "auto" and not settings.holding.factored:
        return "gram", "nystroem"
    if settings.cut.symmetric:
        return "modelling", "biclique"
    return ("assign_labels", "kmeans") if settings.assigning.needs_cut else None


def _choose_for_chunks(settings: Settings, n_columns: int) -> Choice:
    """How K is stored for rows that are read in chunks."""
    barrier = barrier_to_chunks(settings)
    if barrier is not None:
        name, other = barrier
        value = {"affinity": settings.kernel.affinity, "gram": settings.holding.gram}.get(name)
        if value is None:
            raise ParameterError(
                f"rows in chunks work with modelling='biclique' and with assign_labels={_pointwise()}: what was asked "
                "for needs X in memory."
            )
        raise ParameterError(f"{name}={value!r} needs X in memory: load the rows, or use {name}={other!r}.")
    gram = settings.holding.gram
    if gram != "auto":
        return Choice(gram, "as asked for")
    return exact_features(settings.kernel.kernel(), n_columns) or Choice(
        "nystroem", "approximate: the rows are read in chunks"
    )


def _pointwise() -> str:
    """The assigners that do with the embedding alone."""
    return listed([repr(name) for name, assigner in ASSIGNERS.items() if not assigner.needs_cut], "or")


def _check_device(settings: Settings, X: Rows, device: Device) -> None:
    """What a device cannot do."""
    holding = settings.holding
    way_out = "leave device at None" if on_host(X) else "pass X.cpu().numpy() and leave device at None"
    if not settings.kernel.of_rows or not settings.pointwise:
        raise ParameterError(
            f"device={str(device)!r} works with a kernel by name, modelling='biclique' and "
            f"assign_labels={_pointwise()}: {way_out} for the rest."
        )
    if holding.gram in GRAMS and not GRAMS[holding.gram].has_device_tiles:
        raise ParameterError(
            f"gram={holding.gram!r} works on the host, and device={str(device)!r} computes its tiles: leave gram at "
            f"'auto', or {way_out}."
        )
    if sparse.issparse(X):
        raise DataError("device= needs dense rows: pass X.toarray(), or leave device at None.")
    check_device_precision(holding.precision, device)
    kernel = settings.kernel.kernel()
    if holding.factored:
        check_map_on_device(holding, holding.gram, kernel, X.shape[1])
    else:
        check_device_kernel(kernel)


# How K is held


@dataclass(frozen=True)
class Choice:
    """How K will be stored, and why."""

    name: str
    reason: str


def choose_gram(requested: str, kernel: Kernel, n: int, X: Rows, memory_limit: int, *, grids: bool = True) -> Choice:
    """How K of n rows is stored; X are some of these rows. A fixed rule of n, d, the kernel and the memory limit.

    ``"auto"`` stores K if that is small, or if the kernel is slow to compute (not one matrix product) and the matrix
    fits the memory limit. Otherwise it computes tiles. Both are exact. If the kernel is an inner product of few
    columns, K = ΦΦᵀ is as exact, and cheaper. Many rows of at most three columns go through FFTs. Beyond
    ``EXACT_WORK``, K is approximated by landmarks.
    """
    d = X.shape[1]
    if requested != "auto":
        return Choice(requested, "as asked for")
    features = exact_features(kernel, d, n // 4)
    if n > STORE_BELOW and features is not None:
        return features
    fourier = grids and n >= FOURIER_FROM and can_help(kernel, X, n)
    if fourier and is_installed():
        return Choice("fourier", f"exact to {TARGET:g} of each degree: FFTs of {n} rows in {d} columns")
    work = exact_work(kernel, n, X)
    if work > EXACT_WORK:
        seconds = format_seconds(work / WORK_PER_SECOND)
        other = ", and FFTs, which would be exact, need pip install 'biclique[fourier]'" if fourier else ""
        told = f"approximate: exact tiles of {n} rows would take some {seconds} on two cores{other}"
        return Choice("nystroem", told)
    dear = not kernel.cheap or not isinstance(X, np.ndarray)
    if dense_bytes(n) <= memory_limit and (n <= STORE_BELOW or dear):
        return Choice("dense", f"exact: the matrix of {n} rows takes {format_bytes(dense_bytes(n))}")
    return Choice("tiled", f"exact: the matrix of {n} rows would take {format_bytes(dense_bytes(n))}")


def exact_features(kernel: Kernel, n_columns: int, most: int = FEW_EXACT_COLUMNS) -> Choice | None:
    """``"features"``, if they are the kernel itself and few."""
    columns = kernel.exact_columns(n_columns)
    if columns is None or columns > min(FEW_EXACT_COLUMNS, most):
        return None
    return Choice("features", f"exact: {kernel.name} is an inner product of {columns} columns")


def exact_work(kernel: Kernel, n: int, X: Rows) -> float:
    """What an exact fit of the rows costs: entries of K times columns of X, dear kernels more."""
    d = X.shape[1]
    if sparse.issparse(X):
        d = min(d, 10 * (X.nnz // max(X.shape[0], 1) + 1))
    return float(n) ** 2 * float(kernel.cost_per_pair(d))


def choose_precision(requested: str, kernel: Kernel, X: Rows) -> np.dtype[Any]:
    """The dtype of tiles: float32 unless asked otherwise, or unless its rounding would show."""
    if requested == "float64":
        return np.dtype(np.float64)
    error = kernel.float32_error(HeldRows(kernel, X, np.float32).rows)
    if requested == "float32" and error > HOPELESS_ERROR:
        raise ParameterError(
            f"precision='float32' would give kernel values off by {error:.1g}: rows lie too far apart for this kernel "
            "(or its values too close together, or too small); use precision='auto' or 'float64'."
        )
    return np.dtype(np.float32 if requested == "float32" or error <= FLOAT32_ERROR else np.float64)


def factored_precision(requested: str, gram: str, kernel: Kernel, X: Rows) -> np.dtype[Any]:
    """The dtype of a factored K: as for tiles, but float64 for landmarks of a kernel that is not a function of x − y.

    Its values are dominated by what all rows share, and W^(−1/2) magnifies the rounding of that over what tells rows
    apart.
    """
    landmarks = gram in FEATURE_MAPS and FEATURE_MAPS[gram].has_landmarks
    if requested == "auto" and landmarks and not kernel.translation_invariant:
        return np.dtype(np.float64)
    return choose_precision(requested, kernel, X)


def make_gram(
    name: str,
    kernel: Kernel,
    X: Rows,
    *,
    dtype: DTypeLike = np.float64,
    n_jobs: int | None = None,
    memory_limit: int,
    tick: Tick | None = None,
) -> GramOperator:
    """K of a kernel over rows, stored as ``name`` says, a key of ``GRAMS``; ``dtype`` is the precision of tiles."""
    if name not in GRAMS:
        raise ParameterError(f"an exact K is stored as one of {', '.join(map(repr, GRAMS))}, got {name!r}.")
    return GRAMS[name].from_kernel(kernel, X, dtype=dtype, n_jobs=n_jobs, memory_limit=memory_limit, tick=tick)


# Rows and kernel


def find_vertices(settings: Settings, X: Rows, weights: FloatArray) -> Vertices:
    """Distinct rows with multiplicities; for a given matrix the rows that count."""
    if not settings.kernel.given:
        return distinct_rows(X, weights)
    if settings.kernel.neighbors:
        if (weights == 0).any():
            raise DataError(
                "affinity='precomputed_nearest_neighbors' takes no sample_weight of 0, because rows of weight 0 "
                "are in the lists of others: leave those rows and columns out of the graph."
            )
        return Vertices.as_they_are(X, weights, given=True)  # distances need not be symmetric
    return distinct_given(X, weights, parse_memory_limit(settings.holding.memory_limit))


def choose_kernel(
    asked: Settings, vertices: Vertices, random: np.random.RandomState, finer: Finer | None = None
) -> ChosenKernel:
    """The kernel with the γ that is asked for, a number or a rule.

    γ="auto" may be raised by ``finer``.
    """
    if vertices.given:
        return ChosenKernel()
    before = random.get_state()
    settings = asked.kernel
    affinity, rule = settings.affinity, settings.gamma
    gamma: float | None = None
    nearby = None
    if isinstance(affinity, str) and affinity in GAMMA_KERNELS and isinstance(rule, str):
        own = settings.kernel()
        nearby = Nearby.drawn(own, vertices.data, SAMPLE, random) if rule == "auto" else None
        gamma = bandwidth(rule, own, vertices.data, vertices.weights, random, nearby) * (asked.gamma_factor or 1.0)
    elif isinstance(affinity, str) and affinity in GAMMA_KERNELS:
        gamma = float(rule)
    kernel = settings.kernel(gamma)
    if not isinstance(affinity, str):
        _check_own_kernel(kernel, vertices)
    else:
        kernel = kernel.precise(vertices.data)
    chosen, k = ChosenKernel(kernel, gamma, nearby=nearby), asked.n_groups
    parted = asked.cut.orders[0] == 2 and not asked.cut.symmetric  # else parts of K are not clusters of their own
    if finer is None or nearby is None or asked.gamma_factor is not None:
        return chosen
    if not parted or not 1 < k < vertices.n:
        return chosen
    # The rows that γ is from. With so many landmarks, no more than so many rows tell what K looks like.
    rank, after = asked.holding.rank, random.get_state()
    if not isinstance(rank, str) and rank < nearby.n:
        random.set_state(before)
        chosen_rows = draw_by_permutation(vertices.n, rank, random)
        nearby = Nearby(nearby.kernel, vertices.data[chosen_rows], chosen_rows)
    seed = int(random.randint(2**31))
    random.set_state(after)  # what is drawn next must be what a given γ draws
    raised = finer(asked, chosen, vertices.some(nearby.chosen), nearby, seed)
    # How precise a kernel must be, all rows tell, not the sample.
    if raised is chosen:
        return chosen
    return replace(raised, kernel=settings.kernel(raised.gamma).precise(vertices.data), nearby=chosen.nearby)


def _check_own_kernel(kernel: Kernel, vertices: Vertices) -> None:
    """A user's kernel must be symmetric and return one finite number a pair: seen on a few rows."""
    rows = vertices.data[:32]
    # Two arrays: scikit-learn asks a function for half of the pairs only when it is given one twice.
    block = np.asarray(kernel.block(rows, rows.copy()), dtype=float)
    if block.shape != (rows.shape[0],) * 2 or not np.isfinite(block).all():
        raise DataError(
            f"affinity must give a finite number for every pair of rows, got {block.shape} for {len(rows)}."
        )
    gap = np.abs(block - block.T)
    if gap.max() > 1e-6 * np.abs(block).max():
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        a, b = vertices.numbers[i], vertices.numbers[j]
        raise DataError(
            f"affinity must be symmetric, but rows {a} and {b} give {block[i, j]:.3g} one way and {block[j, i]:.3g} "
            "the other: use (f(x, y) + f(y, x)) / 2."
        )


# An exact K, by passes


def plan_exact(settings: Settings, some: Vertices, n: int, chosen: ChosenKernel) -> Plan:
    """How K of n distinct rows is stored and solved, decided from some of them; refuse what does not fit at all."""
    kernel = chosen.kernel
    limit = parse_memory_limit(settings.holding.memory_limit)
    k = min(settings.n_columns - 1, n - 1)
    iterates = _iterates(settings, n, k)
    shortest = 0
    if k > 0:
        shortest = basis_bytes(n, k, FEWEST_BLOCKS) if iterates else direct_bytes(n)
    choice, size, dtype = _hold_exactly(settings, some, n, kernel, limit, shortest, block_columns(k, n))
    computed = kernel is not None and choice.name in GRAMS
    if computed:
        GRAMS[choice.name].check_memory(n, limit)
    anew = computed and not GRAMS[choice.name].passes_are_cheap
    what = f"gram={choice.name!r} for {n} distinct rows and {k} eigenvectors"
    way_out = "ask for fewer clusters, or fit a sample of the rows and predict the rest."
    basis = plan_basis(settings, n, k, limit, size, what, way_out)
    quick = anew and settings.holding.precision != "float64"
    started = iterates and anew and GRAMS[choice.name].starts_from_few and n >= START_FROM
    return Plan(
        settings=settings,
        way=EXACT,
        rows=n,
        gram=choice.name,
        gram_reason=choice.reason,
        memory_limit=limit,
        kernel=kernel,
        gamma=chosen.gamma,
        gamma_reason=chosen.reason,
        orders=orders_to_try(settings, some.weights, n, iterates),
        rank=settings.holding.rank if choice.name in FACTORED else None,
        precision=str(dtype),
        n_vectors=k,
        iterates=iterates,
        tolerance=settings.solving.tolerance(QUICK_TOLERANCE if quick else FINE_TOLERANCE),
        basis_blocks=basis.blocks,
        start_rows=START_ROWS if started else 0,
        bytes=size + basis.bytes,
    )


@dataclass(frozen=True)
class Basis:
    """The vectors that a solver keeps."""

    iterates: bool
    blocks: int
    bytes: int


def _iterates(settings: Settings, n: int, k: int) -> bool:
    return k > 0 and (settings.solving.by_scipy or not solves_directly(n, k))


def plan_basis(settings: Settings, n: int, k: int, limit: int, size: int, what: str, way_out: str) -> Basis:
    """How long a basis of k eigenvectors fits beside ``size`` bytes; refuse if none does."""
    iterates, blocks = _iterates(settings, n, k), blocks_within(n, k, limit - size)
    needed = 0
    if k > 0:
        needed = basis_bytes(n, k, blocks) if iterates else direct_bytes(n)
    require(size + needed, limit, what, f"raise memory_limit, {way_out}")
    return Basis(iterates, blocks, needed)


def _hold_exactly(
    settings: Settings, some: Vertices, n: int, kernel: Kernel | None, limit: int, basis: int, columns: int
) -> tuple[Choice, int, np.dtype[Any]]:
    """How an operator stores K, its bytes, and its precision; a basis of so many bytes must fit beside it."""
    holding, share = settings.holding, n / max(some.n, 1)
    dtype: np.dtype[Any] = np.dtype(np.float64)
    if kernel is None:
        name = "sparse" if sparse.issparse(some.data) else "dense"
        return Choice(name, "the matrix is given"), given_bytes(some.data), dtype
    held = round(data_bytes(some.data) * share)
    choice = choose_gram(holding.gram, kernel, n, some.data, limit - held - basis)
    operator = GRAMS.get(choice.name)
    if operator is not None and choice.name == holding.gram:
        operator.check_rows(kernel, some.data)
    if operator is None or operator.takes_precision:
        dtype = factored_precision(holding.precision, choice.name, kernel, some.data)
    if operator is not None:
        return choice, held + operator.bytes_for(n, some.data.shape[1], columns, dtype), dtype
    rank = RANKS[-1] if isinstance(holding.rank, str) else holding.rank
    return choice, held + factored_bytes(rank, n, columns), dtype


def orders_to_try(settings: Settings, weights: FloatArray, n: int, iterates: bool) -> tuple[float, ...]:
    """The orders that the data may choose from.

    With more clusters than about a sixth of the rows, every cluster would have to have nearly as many rows as the mean,
    and every order would cost a full decomposition: order 2 is taken.
    """
    orders = OrderRule.of(weights, settings.n_groups, settings.cut.orders).orders
    return orders if iterates or n <= DIRECT_BELOW else orders[:1]


# An exact K on a device


def _plan_device(
    settings: Settings,
    source: RowSource,
    X: Rows,
    weights: FloatArray,
    device: Device,
    random: np.random.RandomState,
    finer: Finer,
) -> Planned:
    """Solve the cut of all rows on a device; a few thousand come to the host, from which the bandwidth is chosen."""
    n, d = X.shape
    if source.n_counted != n:
        raise ParameterError("sample_weight of 0 works without device=: leave those rows out, and predict them.")
    pool = Pool.of(*source.draw(CHOICE_ROWS, np.random.RandomState(random.randint(2**31))))
    chosen = choose_kernel(settings, pool.vertices, random, finer)
    k = min(settings.n_columns - 1, n - 1)
    iterates = k > 0 and not solves_directly(n, k)
    orders = OrderRule.of(weights, settings.n_groups, settings.cut.orders).orders
    precision = "float32" if settings.holding.precision == "auto" else settings.holding.precision
    quick = settings.holding.precision != "float64"
    plan = Plan(
        settings=settings,
        way=EXACT,
        rows=n,
        gram="cuda" if device_type(device) == "cuda" else "torch",
        gram_reason=f"exact: tiles on {device}",
        memory_limit=parse_memory_limit(settings.holding.memory_limit),
        kernel=chosen.kernel,
        gamma=chosen.gamma,
        gamma_reason=chosen.reason,
        orders=orders[:1] if pool.n_distinct <= settings.n_groups else orders,
        precision=precision,
        n_vectors=k,
        iterates=iterates,
        tolerance=settings.solving.tolerance(QUICK_TOLERANCE if quick else FINE_TOLERANCE),
        start_rows=DEVICE_START_ROWS if iterates and n >= DEVICE_START_FROM else 0,
        bytes=8 * n * (settings.n_columns + 2),
        device=str(device),
    )
    rows = n * d * (X.dtype.itemsize + (8 if precision == "float64" else 4))  # as they came, and held
    there = device_bytes(settings.kernel.kernel(), n, d, columns=plan.block, precision=precision, device=device)
    there += rows + basis_bytes(n, max(k, 1), BASIS_BLOCKS) + 8 * n * settings.n_columns
    return Planned(replace(plan, device_bytes=there), None, pool)


# A factored K


def _plan_factored(
    settings: Settings, source: RowSource, choice: Choice, random: np.random.RandomState, finer: Finer
) -> Planned:
    """Kernel, precision and the largest rank that fits, from a pool of rows."""
    holding = settings.holding
    check_rank(holding.rank, source.n_rows or None, held=source.in_memory)  # without rows, the draw says so
    # Sources draw in ways of their own: what they use up must not shift what is drawn after.
    pool = Pool.of(*source.draw(pool_size(holding.rank), np.random.RandomState(random.randint(2**31))))
    check_rank(holding.rank, source.n_rows, held=source.in_memory)  # known by now
    if settings.assigning.n_clusters is not None and source.n_rows is not None:
        check_clusters_fit(settings.assigning.n_clusters, source.n_rows, source.n_counted or 0)
    if pool.rows.shape[0] < 2:
        raise DataError(f"X has {pool.rows.shape[0]} rows that count: at least 2 are needed.")
    chosen = choose_kernel(settings, pool.vertices, random, finer)
    kernel = chosen.kernel
    if kernel is None:
        raise ParameterError(f"rows and a kernel are needed here, not affinity={settings.kernel.affinity!r}.")
    if source.device is not None:
        check_map_on_device(holding, choice.name, kernel, source.n_columns)
    n = source.n_rows or pool.rows.shape[0]
    limit = parse_memory_limit(holding.memory_limit)
    most, size = _largest_rank(settings, choice.name, kernel, source, limit)
    mass = source.mass(n)
    orders = OrderRule.of_sums(mass.n_rows, mass.total, mass.effective, settings.n_groups, settings.cut.orders).orders
    plan = Plan(
        settings=settings,
        way=FACTORED_WAY,
        rows=n,
        gram=choice.name,
        gram_reason=choice.reason,
        memory_limit=limit,
        kernel=kernel,
        gamma=chosen.gamma,
        gamma_reason=chosen.reason,
        orders=orders[:1] if pool.n_distinct <= settings.n_groups else orders,
        rank=holding.rank,
        most_rank=most,
        precision=str(factored_precision(holding.precision, choice.name, kernel, pool.rows)),
        n_vectors=settings.n_columns - 1,
        bytes=size,
        device=None if source.device is None else str(source.device),
    )
    return Planned(plan, None, pool)


def _largest_rank(settings: Settings, gram: str, kernel: Kernel, source: RowSource, limit: int) -> tuple[int, int]:
    """The largest rank that fits the memory limit, and the bytes of the least that does; that one must."""
    rank, d = settings.holding.rank, source.n_columns
    kept = source.n_rows * 8 * (settings.n_columns + 1) if source.in_memory and source.n_rows else 0
    least = RANKS[0] if isinstance(rank, str) else rank
    if FEATURE_MAPS[kind_of_map(settings.holding, gram, kernel, d)].exact:
        least = kernel.exact_columns(d) or least
    # Rows that are held are only looked at, a block at a time.
    chunk = BLOCK_ROWS if source.in_memory else min(CHUNK_ROWS, source.n_rows or CHUNK_ROWS)
    way_out = "raise memory_limit or lower rank."
    if source.in_memory:
        way_out = "raise memory_limit, lower rank, or pass the rows as a chunk source (biclique.io.open_chunks)."
    needed = factored_bytes(least, chunk, d) + kept
    require(needed, limit, f"gram={gram!r} of rank {least} for {source.n_rows or 'unknown'} rows", way_out)
    return max(r for r in (least, *RANKS) if factored_bytes(r, chunk, d) + kept <= limit), needed


# A neighbour graph


def plan_graph(settings: Settings, vertices: Vertices, n: int) -> Plan:
    """How the graph of n distinct rows is made and solved; refuse what does not fit."""
    holding = settings.holding
    limit = parse_memory_limit(holding.memory_limit)
    size = graph_bytes(settings, vertices.data, n)
    require(
        size,
        limit,
        f"affinity={settings.kernel.affinity!r} for {n} distinct rows and {holding.n_neighbors} neighbours",
        "raise memory_limit, lower n_neighbors, or use gram='nystroem' with affinity='rbf'.",
    )
    if holding.n_neighbors > max(n, USUAL_NEIGHBORS):
        raise ParameterError(
            f"n_neighbors={holding.n_neighbors} is more than the {n} distinct rows there are: use fewer, "
            f"such as {USUAL_NEIGHBORS}."
        )
    order = settings.cut.order
    return Plan(
        settings=settings,
        way=GRAPH,
        rows=n,
        gram="neighbors",
        gram_reason="the graph is given" if vertices.given else "a sparse matrix of nearest neighbours",
        memory_limit=limit,
        gamma=None if isinstance(settings.kernel.gamma, str) else float(settings.kernel.gamma),
        orders=NEIGHBOR_ORDERS if isinstance(order, str) else (check_order(order),),
        n_vectors=settings.n_columns - 1,
        iterates=True,
        tolerance=settings.solving.tolerance(GRAPH_TOLERANCE),
        bytes=size,
    )


def graph_bytes(settings: Settings, X: Rows, n: int) -> int:
    """Memory of a graph while its neighbours are searched, or then while it is made, and of its eigenvectors."""
    d = int(X.shape[1])
    by_pairs = not (sparse.issparse(X) or uses_tree(n, d))
    search = search_bytes(n, d, settings.n_jobs) if by_pairs else 0
    made = BYTES_PER_NEIGHBOR * n * settings.holding.n_neighbors
    return max(search, made) + 24 * 8 * n * (settings.n_columns + 4)


def check_fast(precision: str, device: Device | None) -> None:
    """Half precision needs a device: the one asked for, or the one on which X is."""
    if precision == "fast" and device is None:
        raise ParameterError("precision='fast' is for device='cuda': use precision='auto' or 'float32' on the host.")


# What a model keeps


class Fitted(Protocol):
    """A fitted embedding, and the rule for labels if labels were asked for.

    Its state is arrays and plain values (``biclique.fit.state``).
    """

    plan: Plan
    seen: Seen | None
    """Training rows for probabilities, if labels were asked for."""

    @property
    def eigenvalues(self) -> FloatArray:
        """Of B, descending, one fewer than columns; zero if there are no more."""

    @property
    def residuals(self) -> FloatArray:
        """Of the eigenvalues."""

    @property
    def n_passes(self) -> int:
        """Over K, or over the rows of a factored one."""

    @property
    def takes_chunks(self) -> bool:
        """Whether new rows may come in chunks."""

    @property
    def keeps_tensors(self) -> bool:
        """Whether new rows that are a tensor are embedded on their device."""

    def for_rows(self) -> Fitted:
        """The same, as small as can be, to embed and label rows elsewhere."""

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows, (n, n_columns), on the host; a training row gets its own row back."""

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        """The labels of any rows; a row that is like no training row takes the label of its nearest."""

    def degrees(self, embedded: FloatArray) -> FloatArray:
        """δ of rows, from their embedding (n, n_columns): similarity to all training rows; NaN at order infinity."""


@dataclass(frozen=True)
class Clusters:
    """What a pass tells of labels that are computed later."""

    sizes: tuple[int, ...]
    """Rows of the clusters that have any."""
    smallest: float
    """The share of the weight that the smallest of the clusters asked for has."""
    least: float
    """The share below which it is dust."""


@dataclass(frozen=True)
class Result:
    """A fit, and what it found for the training rows."""

    fitted: Fitted
    n_vertices: int
    embedding: FloatArray | None
    """None if rows were read in chunks. If the source is lazy, this and the labels are lazy collections."""
    labels: IntArray | None
    cut_history: FloatArray | None = None
    clusters: Clusters | None = None
    """Of a lazy source: what is known of the labels."""
    left_out: IntArray | None = None
    """Rows that count and were left out, if any were."""
