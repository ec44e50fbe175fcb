"""The fit of an approximate (or exactly factored) K: three passes over the rows, held in memory or read in chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from biclique._typing import FloatArray, IntArray, Rows
from biclique.cluster._checks import check_clusters_fit, check_values, warn_about_spread
from biclique.cluster._features import (
    RANKS,
    Pool,
    check_map_on_device,
    check_rank,
    choose_map,
    kind_of_map,
    pool_size,
    warn_about_null_columns,
)
from biclique.cluster._prepare import choose_order, pool_kernel, warn_about_parts
from biclique.exceptions import ApproximationWarning, DataError, warn_user
from biclique.gram import (
    DEVICE_SECONDS_PER_ROW,
    Cost,
    NystroemMap,
    device_factored_bytes,
    device_factored_seconds,
    estimate_factored,
    exact_columns,
    factored_bytes,
    factored_precision,
    make_map,
    parse_memory_limit,
    require,
)
from biclique.gram.cuda import device_type, place_rows
from biclique.io import CHUNK_ROWS, ChunkSource, draw_numbers
from biclique.kernels import Kernel, check_rows_for_kernel
from biclique.namespace import moved, rows_on_host, to_host
from biclique.progress import Progress
from biclique.spectral import ApproximationError, FactoredSpectrum, factored_spectrum

BLOCK_ROWS = 4_096
ESTIMATE_ROWS = 4_096
ESTIMATE_RANK = 512
"""Of ``rank="auto"``, which is known only after a look at the data."""


class RowSource(ABC):
    """Rows with their multiplicities, passed over as often as is asked."""

    held: bool
    """Whether the rows are in memory."""
    on_device: bool = False
    """Whether they are tensors, and passes look at them where they lie."""
    n_columns: int
    weights: FloatArray | None

    @property
    def n_counted(self) -> int | None:
        """Rows of positive weight."""
        return self.n_rows if self.weights is None else int((self.weights > 0).sum())

    @property
    @abstractmethod
    def n_rows(self) -> int | None:
        """None where only a pass can tell."""

    @abstractmethod
    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        """At most ``size`` rows that count, drawn evenly, with their multiplicities."""

    @abstractmethod
    def _pieces(self) -> Iterator[tuple[Rows, FloatArray]]:
        """One pass: chunks of rows with their multiplicities."""

    def chunks(self, what: str, progress: Progress) -> Iterator[tuple[Rows, FloatArray]]:
        """One pass, shown as such."""
        done, told = 0, f"pass over the rows for the {what}"
        progress.share(told, 0.0)
        for rows, weights in self._pieces():
            yield rows, weights
            done += rows.shape[0]
            if self.n_rows:
                progress.share(told, done / self.n_rows)


class ArrayRows(RowSource):
    """Rows that are held in memory, dense or sparse."""

    held = True

    def __init__(self, X: Rows, weights: FloatArray) -> None:
        self.X = X
        self.weights: FloatArray = weights
        self.n_columns = int(X.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        chosen = _drawn(self.weights, size, random)
        return rows_on_host(self.X, chosen), self.weights[chosen]

    def _pieces(self) -> Iterator[tuple[Rows, FloatArray]]:
        for top in range(0, self.n_rows, CHUNK_ROWS):
            yield self.X[top : top + CHUNK_ROWS], self.weights[top : top + CHUNK_ROWS]


class DeviceRows(ArrayRows):
    """Rows that lie on a device: they travel there once, or not at all, and only what is drawn comes to the host."""

    on_device = True

    def __init__(self, X: Rows, weights: FloatArray, device: Any) -> None:
        super().__init__(place_rows(X, device), weights)
        self.device_weights = moved(weights, self.X)

    def _pieces(self) -> Iterator[tuple[Rows, FloatArray]]:
        yield self.X, self.device_weights


class ChunkRows(RowSource):
    """Rows that are read chunk by chunk; the first pass looks for values that cannot be used."""

    held = False

    def __init__(self, source: ChunkSource, weights: FloatArray | None, affinity: object = None) -> None:
        self.source, self.weights, self.affinity = source, weights, affinity
        self.n_columns = source.n_columns
        self._checked = False

    @property
    def n_rows(self) -> int | None:
        return self.source.n_rows

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        if self.weights is None:
            rows, numbers = self.source.draw(size, random)
        else:
            numbers = _drawn(self.weights, size, random)
            rows = self.source.take(numbers)
            self._check_weights()
        check_rows_for_kernel(self.affinity, rows, numbers)
        return rows, np.ones(len(rows)) if self.weights is None else self.weights[numbers]

    def _pieces(self) -> Iterator[tuple[Rows, FloatArray]]:
        done = 0
        for rows in self.source.chunks(CHUNK_ROWS, check_finite=not self._checked):
            if not self._checked:
                check_values(rows, self.source.columns, first_row=done)
                check_rows_for_kernel(self.affinity, rows, range(done, done + len(rows)))
            yield rows, np.ones(len(rows)) if self.weights is None else self.weights[done : done + len(rows)]
            done += len(rows)
        self._checked = True

    def _check_weights(self) -> None:
        if self.weights is not None and self.n_rows is not None and len(self.weights) != self.n_rows:
            raise DataError(f"sample_weight has {len(self.weights)} numbers for {self.n_rows} rows: give one a row.")


def _drawn(weights: FloatArray, size: int, random: np.random.RandomState) -> IntArray:
    """Numbers of at most ``size`` rows of positive weight, drawn evenly, ascending."""
    counted = np.flatnonzero(weights > 0)
    return counted[draw_numbers(len(counted), size, random)]


@dataclass(frozen=True)
class FactoredFit:
    """A fitted embedding of a factored K, and what was chosen on the way."""

    spectrum: FactoredSpectrum
    n_columns: int
    pool: Pool
    gamma: float | None
    order: float
    error: ApproximationError | None
    """None where the features are exact."""
    on_device: bool = False
    """Whether new rows that are a tensor are embedded where it lies."""

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows, (n, n_columns)."""
        return self.padded(self.spectrum.embed(X, n_jobs))

    def padded(self, rows: FloatArray) -> FloatArray:
        """Rows with as many columns as were asked for, on the host."""
        return np.pad(to_host(rows), ((0, 0), (0, self.n_columns - rows.shape[1])))


def fit_factored(
    model: Any, source: RowSource, gram: str, n_columns: int, progress: Progress, names: Any = None
) -> FactoredFit:
    """Choose kernel and features from a pool of rows, and solve the cut in two passes."""
    random = check_random_state(model.random_state)
    order = choose_order(model)
    check_rank(model.rank, source.n_rows, held=source.held)
    # Sources draw in ways of their own: what they use up must not shift what is drawn after.
    pool = Pool.of(*source.draw(pool_size(model.rank), np.random.RandomState(random.randint(2**31))))
    check_rank(model.rank, source.n_rows, held=source.held)  # known by now
    if hasattr(model, "n_clusters") and source.n_rows is not None:
        check_clusters_fit(model.n_clusters, source.n_rows, source.n_counted or 0)
    if pool.rows.shape[0] < 2:
        raise DataError(f"X has {pool.rows.shape[0]} rows that count: at least 2 are needed.")
    warn_about_spread(pool.rows, names)
    kernel, gamma = pool_kernel(model, pool, random)
    if source.on_device:
        check_map_on_device(model, gram, kernel, source.n_columns)
    dtype = factored_precision(model.precision, gram, kernel, pool.rows)
    most = _check_memory(model, gram, kernel, source, n_columns)
    chosen = choose_map(model, gram, kernel, pool, order=order, k=n_columns - 1, dtype=dtype, random=random, most=most)
    feature_map, error = chosen.map, chosen.error
    if progress.enabled:
        progress.say(f"gram={feature_map.name!r} of rank {feature_map.size}" + (f": {error}" if error else ", exact"))
    spectrum = factored_spectrum(
        feature_map,
        lambda what: source.chunks(what, progress),
        order,
        n_columns - 1,
        length=float(np.sqrt(np.abs(kernel.diagonal(pool.rows[:1000])).mean())),
        n_jobs=model.n_jobs,
    ).with_signs(pool.rows, pool.weights, model.n_jobs)
    _warn_about_unseen(spectrum)
    warn_about_null_columns(spectrum.informative, n_columns)
    if isinstance(feature_map, NystroemMap):
        warn_about_parts(feature_map.part_sizes(), feature_map.size, gamma, "landmarks")
    return FactoredFit(spectrum, n_columns, pool, gamma, order, error, source.on_device)


def estimate_fit(model: Any, source: RowSource, gram: str, n_columns: int, device: Any = None) -> Cost:
    """Time and memory of a fit, from the speed of a block of rows; on a GPU, from what is known of one."""
    random = check_random_state(0)
    check_rank(model.rank, source.n_rows, held=source.held)
    pool = Pool.of(*source.draw(ESTIMATE_ROWS, random))
    kernel, _ = pool_kernel(model, pool, random)
    kind = kind_of_map(model, gram, kernel, source.n_columns)
    if device is not None:
        check_map_on_device(model, gram, kernel, source.n_columns)
    rank = ESTIMATE_RANK if isinstance(model.rank, str) else model.rank
    dtype = factored_precision(model.precision, gram, kernel, pool.rows)
    made = make_map(kind, kernel, pool.rows[pool.distinct], rank, random=random, dtype=dtype)
    n = source.n_rows or pool.rows.shape[0]
    kept = n * 8 * (n_columns + 1) if source.held else 4 * n
    if device is None or device_type(device) == "cpu":
        seconds = estimate_factored(made, pool.rows, n, model.n_jobs)
    else:
        seconds = device_factored_seconds(made.size, n, source.n_columns) + DEVICE_SECONDS_PER_ROW * n * n_columns
    size = factored_bytes(made.size, CHUNK_ROWS, source.n_columns) + kept
    if device is None:
        return Cost(gram, n, seconds, size)
    rows = n * (source.n_columns * pool.rows.dtype.itemsize + 8 * n_columns)
    return Cost(gram, n, seconds, size, str(device), rows + device_factored_bytes(made.size, made.dtype.itemsize))


def _check_memory(model: Any, gram: str, kernel: Kernel, source: RowSource, n_columns: int) -> int:
    """The largest rank that fits the memory limit; the one asked for, or the least, must."""
    limit = parse_memory_limit(model.memory_limit)
    kept = source.n_rows * 8 * (n_columns + 1) if source.held and source.n_rows else 0
    least = RANKS[0] if isinstance(model.rank, str) else model.rank
    if kind_of_map(model, gram, kernel, source.n_columns) == "exact":
        least = exact_columns(kernel, source.n_columns) or least
    # Rows that are held are only looked at, a block at a time.
    chunk = BLOCK_ROWS if source.held else min(CHUNK_ROWS, source.n_rows or CHUNK_ROWS)
    way_out = "raise memory_limit or lower rank."
    if source.held:
        way_out = "raise memory_limit, lower rank, or pass the rows as a chunk source (biclique.io.open_chunks)."
    require(
        factored_bytes(least, chunk, source.n_columns) + kept,
        limit,
        f"gram={gram!r} of rank {least} for {source.n_rows or 'unknown'} rows",
        way_out,
    )
    return max(r for r in (least, *RANKS) if factored_bytes(r, chunk, source.n_columns) + kept <= limit)


def _warn_about_unseen(spectrum: FactoredSpectrum) -> None:
    if spectrum.unseen:
        warn_user(
            f"{spectrum.unseen} of {spectrum.n_rows} rows are like no landmark or feature (degree zero at order "
            f"{spectrum.order:g}), so nothing says where they belong: use a higher order or rank, or lower gamma.",
            ApproximationWarning,
        )
