"""Plan: every decision of a fit, taken once and here, with its reason, before any large work; and Fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from biclique._typing import Device, FloatArray, IntArray, Rows
from biclique.device.torch_tiles import check_device_kernel, check_device_precision, device_type
from biclique.exceptions import DataError, LongFitWarning, ParameterError, warn_user
from biclique.features.maps import DEVICE_ENTRIES, FEATURE_MAPS, factored_bytes
from biclique.features.neighborhoods import LANDMARKS
from biclique.fit.cost import Cost, device_bytes
from biclique.fit.low_rank import check_map_on_device, check_rank, kind_of_map, pool_size, rank_of
from biclique.fit.settings import FACTORED, Settings
from biclique.gram import GRAMS, GramOperator, MeasuredError, dense_bytes, given_bytes
from biclique.kernels import HeldRows, Kernel, bandwidth, check_rows_for_kernel, needs_gamma
from biclique.neighbors.index import search_bytes, uses_tree
from biclique.progress import format_seconds
from biclique.rows.array import Pool, RowSource, Vertices, distinct_given, distinct_rows
from biclique.rows.checks import check_clusters_fit
from biclique.runtime import Tick, data_bytes, format_bytes, parse_memory_limit, require
from biclique.runtime.namespace import PIECE_ROWS, on_host
from biclique.spectral.assign import ASSIGNERS
from biclique.spectral.cut import check_order
from biclique.spectral.rounding import Seen
from biclique.spectral.solver import (
    BASIS_BLOCKS,
    FEWEST_BLOCKS,
    basis_bytes,
    block_columns,
    blocks_within,
    direct_bytes,
    solves_directly,
)

EXACT, FACTORED_WAY, NEIGHBORHOODS = "exact", "factored", "neighborhoods"
"""The ways: passes over K; three passes over the rows of a factored K; the same for neighbourhoods, the default."""

LOOKED_AT = 65_536
"""Rows that a plan without a fit looks at."""

CHOICE_ROWS = 4_096
"""Rows from which the bandwidth is chosen on a device: there a search for equal rows would take as long as the fit."""

BLOCK_ROWS = 4_096

BYTES_PER_ROW = 400
"""Of neighbourhoods of rows in memory: the landmarks of a row, and copies of them."""

GRAPH_NEIGHBORS = 10
"""``n_neighbors`` of a neighbour graph, as in scikit-learn: with fewer rows, all of them are neighbours."""

BYTES_PER_NEIGHBOR = 120
"""Of a graph while it is made, for every row and neighbour."""

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

LONG_WORK = 6e11
"""From this much work on an exact fit says how long it will take: some 12 s on two cores."""

WORK_PER_SECOND = 5e10


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
    orders: tuple[float, ...] = ()
    """To try, from the first on."""
    order: float | None = None
    order_reason: str = ""
    rank: int | str | None = None
    """Of a factored K."""
    n_neighbors: int | None = None
    """r in effect, of neighbourhoods."""
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
        if len(self.orders) == 1:
            return f"{self.orders[0]:g}"
        return f"the least of {', '.join(f'{order:g}' for order in self.orders)} that leaves no tiny cluster"

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

    def __str__(self) -> str:
        settings = self.settings
        similarity = settings.kernel.affinity if isinstance(settings.kernel.affinity, str) else "a kernel of your own"
        gamma = "" if self.gamma is None else f", gamma={self.gamma:.4g}"
        reason = f" ({self.order_reason})" if self.order_reason else ""
        order = f"{self.order:g}{reason}" if self.order is not None else self.rule
        lines = [
            f"{self.rows} rows, {settings.n_columns} columns of the embedding",
            f"similarity: {similarity}{gamma}, {self.precision}",
            f"gram={self.gram!r}: {self.gram_reason}",
            f"order: {order}",
        ]
        if self.rank is not None:
            lines.append(f"rank: {self.rank}" + (f" ({self.error})" if self.error is not None else ""))
        if self.n_neighbors is not None:
            lines.append(f"neighbours: {self.n_neighbors} landmarks a row")
        if self.way != EXACT:
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


@dataclass(frozen=True)
class ChosenKernel:
    """The kernel with its γ; neither for a given matrix."""

    kernel: Kernel | None = None
    gamma: float | None = None


def make_plan(
    settings: Settings, source: RowSource, random: np.random.RandomState, looked_at: int | None = None
) -> Planned:
    """Take every decision that settings, sizes and a look at the rows allow; refuse what cannot be done.

    A fit looks at all rows if equal ones are made one. ``looked_at`` is a number of rows that is enough for a plan
    without a fit: no full pass, no device.
    """
    way, choice = choose_way(settings, source)
    if source.in_memory and source.device is None and settings.kernel.of_rows:
        check_rows_for_kernel(settings.kernel.affinity, source.held)
    if way == NEIGHBORHOODS:
        return Planned(plan_neighborhoods(settings, source))
    if way == FACTORED_WAY:
        return _plan_factored(settings, source, choice, random)
    X, weights = source.held, source.weights
    if weights is None:
        weights = np.ones(X.shape[0])
    if source.device is not None:
        return _plan_device(settings, source, X, source.device, random)
    whole = X.shape[0]
    if looked_at is not None and whole > looked_at and not settings.kernel.given:
        X, weights = source.draw(looked_at, np.random.RandomState(0))
    vertices = find_vertices(settings, X, weights)
    n = vertices.n
    if X is not source.held:  # few distinct rows among many are all there are
        n = n if n < 0.5 * X.shape[0] else round(n / X.shape[0] * whole)
    if settings.kernel.neighbors:
        return Planned(plan_graph(settings, vertices, n), vertices)
    chosen = choose_kernel(settings, vertices, random)
    return Planned(plan_exact(settings, vertices, n, chosen), vertices)


def plan_neighborhoods(settings: Settings, source: RowSource) -> Plan:
    """The default: nothing is left to decide but what ``order="auto"`` is."""
    order, rank = settings.cut.order, settings.holding.rank
    groups, n = settings.n_groups, source.n_rows
    if not isinstance(rank, str) and rank < groups:
        raise ParameterError(f"rank={rank} landmarks are fewer than the {groups} clusters: use rank='auto' or more.")
    if rank == "all" and not source.in_memory:
        raise ParameterError("rank='all' needs X in memory: load the rows, or use rank='auto'.")
    if settings.assigning.n_clusters is not None and n:  # without rows, the draw says why
        check_clusters_fit(settings.assigning.n_clusters, n, source.n_counted or 0)
    limit = parse_memory_limit(settings.holding.memory_limit)
    size = (n or 0) * (BYTES_PER_ROW + 8 * settings.n_columns) if source.in_memory else 0
    require(size, limit, f"neighbourhoods of {n} rows", "raise memory_limit, or pass a Dask collection.")
    return Plan(
        settings=settings,
        way=NEIGHBORHOODS,
        rows=n or 0,
        gram="neighborhoods",
        gram_reason="the hypergraph of neighbourhoods",
        memory_limit=limit,
        bytes=size,
        orders=(2.0,) if isinstance(order, str) else (check_order(order),),
        rank=rank,
        n_vectors=settings.n_columns - 1,
        device=None if source.device is None else str(source.device),
        device_bytes=0 if source.device is None else _neighborhoods_on_device(source, rank),
    )


def _neighborhoods_on_device(source: RowSource, rank: int | str) -> int:
    """Bytes of the rows, of a block of them in float64, and of their products with the landmarks."""
    n, d = source.held.shape
    landmarks = min(LANDMARKS if isinstance(rank, str) else rank, n)
    return int(n * d * source.held.dtype.itemsize + min(n, DEVICE_ENTRIES // 64) * (16 * d + 8 * landmarks))


# Which way


def choose_way(settings: Settings, source: RowSource) -> tuple[str, Choice]:
    """How K is stored, as far as settings and sizes decide it; what cannot be done is refused here."""
    kernel, gram = settings.kernel, settings.holding.gram
    asked = Choice(gram, "as asked for")
    if kernel.neighborhoods and settings.pointwise:
        if sparse.issparse(source.held) if source.device is not None else False:
            raise DataError("device= needs dense rows: pass X.toarray(), or leave device at None.")
        if source.device is not None and kernel.metric == "gower":
            raise ParameterError("the metric 'gower' works on the host: leave device at None.")
        return NEIGHBORHOODS, asked
    if source.device is not None:
        _check_device(settings, source.held, source.device)
        where = Choice(gram, f"as asked for, on {source.device}")
        return (FACTORED_WAY, where) if settings.holding.factored else (EXACT, asked)
    if not source.in_memory:
        return FACTORED_WAY, _choose_for_chunks(settings, source.n_columns)
    if not kernel.of_rows or not settings.pointwise:
        return EXACT, asked
    limit = parse_memory_limit(settings.holding.memory_limit)
    choice = choose_gram(gram, settings.kernel.kernel(), source.held.shape[0], source.held, limit)
    return (FACTORED_WAY if choice.name in FACTORED else EXACT), choice


def barrier_to_chunks(settings: Settings) -> tuple[str, str] | None:
    """The parameter that needs rows in memory, and a value that does not; None where chunks will do."""
    if not (settings.kernel.of_rows or settings.kernel.neighborhoods):
        return "affinity", "neighborhoods"
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
    if exact_columns(settings.kernel.kernel(), n_columns):
        return Choice("features", "exact: the kernel is an inner product of few columns")
    return Choice("nystroem", "approximate: the rows are read in chunks")


def _pointwise() -> str:
    """The assigners that do with the embedding alone."""
    return " or ".join(repr(name) for name, assigner in ASSIGNERS.items() if not assigner.needs_cut)


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


def choose_gram(requested: str, kernel: Kernel, n: int, X: Rows, memory_limit: int) -> Choice:
    """How K of n rows is stored; X are some of these rows.

    ``"auto"`` stores K up to 4,096 rows, and computes tiles above; a kernel that is slow to compute is stored as long
    as the matrix fits the memory limit. All of this is exact.
    """
    if requested != "auto":
        return Choice(requested, "as asked for")
    dear = not kernel.cheap or not isinstance(X, np.ndarray)
    if n <= STORE_BELOW or (dear and dense_bytes(n) <= memory_limit):
        return Choice("dense", f"exact: the matrix of {n} rows takes {format_bytes(dense_bytes(n))}")
    return Choice("tiled", f"exact: the matrix of {n} rows would take {format_bytes(dense_bytes(n))}")


FEW_EXACT_COLUMNS = 512
"""Exact features of so many columns are taken for rows that are read in chunks."""


def exact_columns(kernel: Kernel, n_columns: int) -> bool:
    """Whether the kernel is an inner product of few columns."""
    columns = kernel.exact_columns(n_columns)
    return columns is not None and columns <= FEW_EXACT_COLUMNS


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


def choose_kernel(asked: Settings, vertices: Vertices, random: np.random.RandomState) -> ChosenKernel:
    """The kernel with the γ that is asked for, a number or a rule."""
    if vertices.given or asked.kernel.neighborhoods:
        return ChosenKernel()
    settings = asked.kernel
    affinity, rule = settings.affinity, settings.gamma
    gamma: float | None = None
    if needs_gamma(affinity):
        gamma = float(rule) if not isinstance(rule, str) else 0.0
        if isinstance(rule, str):
            gamma = bandwidth(rule, settings.kernel(), vertices.data, vertices.weights, random)
    kernel = settings.kernel(gamma)
    if not isinstance(affinity, str):
        _check_own_kernel(kernel, vertices)
        return ChosenKernel(kernel, gamma)
    return ChosenKernel(kernel.precise(vertices.data), gamma)


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
        _warn_about_time(choice.name, kernel, n, some.data)
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
        orders=orders_to_try(settings, n),
        rank=settings.holding.rank if choice.name in FACTORED else None,
        precision=str(dtype),
        n_vectors=k,
        iterates=iterates,
        tolerance=settings.solving.tolerance(QUICK_TOLERANCE if quick else FINE_TOLERANCE),
        basis_blocks=basis.blocks,
        start_rows=START_ROWS if started else 0,
        bytes=size + basis.bytes,
    )


def _warn_about_time(gram: str, kernel: Kernel | None, n: int, X: Rows) -> None:
    """Say it if tiles will take long."""
    if kernel is None or gram != "tiled" or exact_work(kernel, n, X) <= LONG_WORK:
        return
    seconds = format_seconds(exact_work(kernel, n, X) / WORK_PER_SECOND)
    warn_user(
        f"an exact fit of {n} rows takes some {seconds} on two cores (verbose=1 shows the time left): "
        "affinity='neighborhoods', the default, takes seconds.",
        LongFitWarning,
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
    if settings.kernel.neighborhoods:
        return Choice("neighborhoods", "the hypergraph of neighbourhoods"), 128 * n, dtype
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
    return choice, held + factored_bytes(rank_of(holding, n), n, columns), dtype


def orders_to_try(settings: Settings, n: int) -> tuple[float, ...]:
    """The order asked for, or those that "auto" tries; order 2 alone if there is nothing to tell apart."""
    orders = settings.cut.orders
    if settings.kernel.neighborhoods or settings.kernel.neighbors or not 1 < settings.n_groups < n:
        return orders[:1]
    return orders


# An exact K on a device


def _plan_device(
    settings: Settings,
    source: RowSource,
    X: Rows,
    device: Device,
    random: np.random.RandomState,
) -> Planned:
    """Solve the cut of all rows on a device; a few thousand come to the host, from which the bandwidth is chosen."""
    n, d = X.shape
    if source.n_counted != n:
        raise ParameterError("sample_weight of 0 works without device=: leave those rows out, and predict them.")
    pool = Pool.of(*source.draw(CHOICE_ROWS, np.random.RandomState(random.randint(2**31))))
    chosen = choose_kernel(settings, pool.vertices, random)
    k = min(settings.n_columns - 1, n - 1)
    iterates = k > 0 and not solves_directly(n, k)
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
        orders=orders_to_try(settings, pool.n_distinct),
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


def _plan_factored(settings: Settings, source: RowSource, choice: Choice, random: np.random.RandomState) -> Planned:
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
    chosen = choose_kernel(settings, pool.vertices, random)
    kernel = chosen.kernel
    if kernel is None:
        raise ParameterError(f"rows and a kernel are needed here, not affinity={settings.kernel.affinity!r}.")
    if source.device is not None:
        check_map_on_device(holding, choice.name, kernel, source.n_columns)
    n = source.n_rows or pool.rows.shape[0]
    limit = parse_memory_limit(holding.memory_limit)
    size = _factored_bytes(settings, choice.name, kernel, source, limit)
    plan = Plan(
        settings=settings,
        way=FACTORED_WAY,
        rows=n,
        gram=choice.name,
        gram_reason=choice.reason,
        memory_limit=limit,
        kernel=kernel,
        gamma=chosen.gamma,
        orders=orders_to_try(settings, pool.n_distinct),
        rank=holding.rank,
        precision=str(factored_precision(holding.precision, choice.name, kernel, pool.rows)),
        n_vectors=settings.n_columns - 1,
        bytes=size,
        device=None if source.device is None else str(source.device),
    )
    return Planned(plan, None, pool)


def _factored_bytes(settings: Settings, gram: str, kernel: Kernel, source: RowSource, limit: int) -> int:
    """Bytes of a factored K, which must fit the memory limit."""
    d = source.n_columns
    kept = source.n_rows * 8 * (settings.n_columns + 1) if source.in_memory and source.n_rows else 0
    rank = rank_of(settings.holding, source.n_rows)
    if FEATURE_MAPS[kind_of_map(settings.holding, gram, kernel, d)].exact:
        rank = kernel.exact_columns(d) or rank
    # Rows that are held are only looked at, a block at a time.
    chunk = BLOCK_ROWS if source.in_memory else min(PIECE_ROWS, source.n_rows or PIECE_ROWS)
    way_out = "raise memory_limit or lower rank."
    if source.in_memory:
        way_out = "raise memory_limit, lower rank, or pass the rows as a Dask array or data frame."
    needed = factored_bytes(rank, chunk, d) + kept
    require(needed, limit, f"gram={gram!r} of rank {rank} for {source.n_rows or 'unknown'} rows", way_out)
    return needed


# A neighbour graph


def plan_graph(settings: Settings, vertices: Vertices, n: int) -> Plan:
    """How the graph of n distinct rows is made and solved; refuse what does not fit."""
    limit, n_neighbors = parse_memory_limit(settings.holding.memory_limit), neighbors_of(settings)
    size = graph_bytes(settings, vertices.data, n)
    require(
        size,
        limit,
        f"affinity={settings.kernel.affinity!r} for {n} distinct rows and {n_neighbors} neighbours",
        "raise memory_limit, lower n_neighbors, or use affinity='neighborhoods'.",
    )
    if n_neighbors > max(n, GRAPH_NEIGHBORS):
        raise ParameterError(
            f"n_neighbors={n_neighbors} is more than the {n} distinct rows there are: use fewer, "
            f"such as {GRAPH_NEIGHBORS}."
        )
    k = min(settings.n_columns, n) - 1
    return Plan(
        settings=settings,
        way=EXACT,
        rows=n,
        gram="neighbors",
        gram_reason="the graph is given" if vertices.given else "a sparse matrix of nearest neighbours",
        memory_limit=limit,
        orders=orders_to_try(settings, n),
        n_vectors=k,
        iterates=_iterates(settings, n, k),
        tolerance=settings.solving.tolerance(FINE_TOLERANCE),
        basis_blocks=BASIS_BLOCKS,
        bytes=size,
    )


def neighbors_of(settings: Settings) -> int:
    """``n_neighbors`` of a graph."""
    return settings.holding.n_neighbors or GRAPH_NEIGHBORS


def graph_bytes(settings: Settings, X: Rows, n: int) -> int:
    """Memory of a graph while its neighbours are searched, or then while it is made, and of its eigenvectors."""
    d = int(X.shape[1])
    by_pairs = not (sparse.issparse(X) or uses_tree(n, d))
    search = search_bytes(n, d, settings.n_jobs) if by_pairs else 0
    made = BYTES_PER_NEIGHBOR * n * neighbors_of(settings)
    return max(search, made) + 24 * 8 * n * (settings.n_columns + 4)


def check_fast(precision: str, device: Device | None) -> None:
    """Half precision needs a device: the one asked for, or the one on which X is."""
    if precision == "fast" and device is None:
        raise ParameterError("precision='fast' is for device='cuda': use precision='auto' or 'float32' on the host.")


# What a model keeps


class Fitted(Protocol):
    """A fitted embedding, and the rule for labels if labels were asked for."""

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
