"""The fit of an approximate (or exactly factored) K: three passes over the rows, held in memory or read in chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.device.torch_tiles import device_type, place_rows
from biclique.exceptions import ApproximationWarning, DataError, warn_user
from biclique.features.make import make_map
from biclique.features.passes import device_factored_bytes, factored_bytes
from biclique.fit.checks import check_clusters_fit, check_values, warn_about_spread
from biclique.fit.cost import DEVICE_SECONDS_PER_ROW, Cost, device_factored_seconds, estimate_factored
from biclique.fit.exact import proposed, unit_rows
from biclique.fit.prepare import Vertices, orders_asked, pool_kernel
from biclique.fit.rank import (
    RANKS,
    Pool,
    check_map_on_device,
    check_rank,
    choose_map,
    kind_of_map,
    pool_size,
    warn_about_null_columns,
)
from biclique.gram import factored_precision
from biclique.io import CHUNK_ROWS, ChunkSource, draw_numbers
from biclique.kernels import Kernel, check_rows_for_kernel
from biclique.neighbors.index import NeighborIndex
from biclique.progress import Progress
from biclique.runtime.arguments import check_random
from biclique.runtime.memory import parse_memory_limit, require
from biclique.runtime.namespace import moved, rows_on_host, to_host
from biclique.spectral import (
    ASSIGNERS,
    ApproximationError,
    Assignment,
    FactoredSpectrum,
    LandmarkParts,
    RowSums,
    factored_spectrum,
)
from biclique.spectral.joining import Joined, NearRows, join_parts, parts_cure
from biclique.spectral.order import TEST_STARTS, Attempt, OrderRule, least_order

BLOCK_ROWS = 4_096
POOL_MARGIN = 0.5
"""A cluster of the pool with less than this share of what is needed is dust without a look at all rows."""
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
    error: ApproximationError | None
    """None where the features are exact."""
    on_device: bool = False
    """Whether new rows that are a tensor are embedded where it lies."""
    order_reason: str = ""

    @property
    def order(self) -> float:
        return self.spectrum.order

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows, (n, n_columns)."""
        return self.padded(self.spectrum.embed(X, n_jobs))

    def padded(self, rows: FloatArray) -> FloatArray:
        """Rows with as many columns as were asked for, on the host."""
        return np.pad(to_host(rows), ((0, 0), (0, self.n_columns - rows.shape[1])))

    def labels(
        self, X: Rows, rules: Sequence[Labelling], n_jobs: int | None, *, keep: bool = False
    ) -> tuple[list[IntArray], FloatArray | None]:
        """The labels of any rows by each of some rules; and their embedding, where it is to be kept whole.

        A row that no landmark sees takes the label of its nearest landmark.
        """

        def of_block(rows: FloatArray, seen: np.ndarray) -> tuple[np.ndarray, list[IntArray], FloatArray]:
            rows = self.padded(rows)
            return seen, [rule(rows) for rule in rules], rows if keep else rows[:0]

        blocks = self.spectrum.apply_seen(X, of_block, n_jobs)
        out = [np.concatenate([labels[j] for _, labels, _ in blocks]) for j in range(len(rules))]
        unseen = np.flatnonzero(~np.concatenate([seen for seen, _, _ in blocks]))
        held = self.spectrum.map.held
        if len(unseen) and held is not None and rules:
            near = NeighborIndex(held.rows, search="exact", n_jobs=n_jobs)
            places = near.query(held.hold(rows_on_host(X, unseen)), 1)[1][:, 0]
            landmarks = self.padded(self.spectrum.embed_landmarks(n_jobs))
            for labels, rule in zip(out, rules, strict=True):
                labels[unseen] = rule(landmarks)[places]
        return out, np.concatenate([rows for _, _, rows in blocks]) if keep else None


Labelling = Callable[[FloatArray], IntArray]
"""The labels of rows of an embedding."""


@dataclass(frozen=True)
class Finished:
    """The third pass over all rows."""

    embedding: FloatArray | None  # where rows are held
    labels: IntArray | None
    sizes: FloatArray
    """Weights of the clusters by which the order is tested."""


@dataclass
class FactoredTrial:
    """A fit at one order; the third pass is made only where it may be the last."""

    fit: FactoredFit
    tested: Assignment | None
    assignment: Assignment | None
    finished: Finished | None = None


class FactoredSearch:
    """Kernel and features chosen from a pool of rows; then fits at one order after the other, in two passes each."""

    def __init__(
        self,
        model: Any,
        source: RowSource,
        gram: str,
        n_columns: int,
        n_clusters: int,
        progress: Progress,
        names: Any = None,
        assign: Callable[[FactoredFit], tuple[Assignment, Labelling]] | None = None,
    ) -> None:
        self.model, self.source, self.progress = model, source, progress
        self.n_columns, self.assign = n_columns, assign
        random = check_random(model.random_state)
        check_rank(model.rank, source.n_rows, held=source.held)
        # Sources draw in ways of their own: what they use up must not shift what is drawn after.
        pool = Pool.of(*source.draw(pool_size(model.rank), np.random.RandomState(random.randint(2**31))))
        self.pool = pool
        check_rank(model.rank, source.n_rows, held=source.held)  # known by now
        if hasattr(model, "n_clusters") and source.n_rows is not None:
            check_clusters_fit(model.n_clusters, source.n_rows, source.n_counted or 0)
        if pool.rows.shape[0] < 2:
            raise DataError(f"X has {pool.rows.shape[0]} rows that count: at least 2 are needed.")
        warn_about_spread(pool.rows, names)
        kernel, self.gamma = pool_kernel(model, pool, random)
        self.kernel = kernel
        if source.on_device:
            check_map_on_device(model, gram, kernel, source.n_columns)
        dtype = factored_precision(model.precision, gram, kernel, pool.rows)
        most = _check_memory(model, gram, kernel, source, n_columns)
        self.rule = self._rule(n_clusters, dtype, random)
        chosen = choose_map(
            model,
            gram,
            kernel,
            pool,
            order=self.rule.orders[0],
            k=n_columns - 1,
            dtype=dtype,
            random=random,
            most=most,
        )
        self.map, self.error = chosen.map, chosen.error
        if progress.enabled:
            told = f": {self.error}" if self.error else ", exact"
            progress.say(f"gram={self.map.name!r} of rank {self.map.size}{told}")
        self._first: RowSums | None = None
        self._parts, self._joined = self._find_parts(min(n_clusters, n_columns))

    def _find_parts(self, most: int) -> tuple[LandmarkParts | None, Joined | None]:
        """The parts that landmarks fall into, joined as rows would be, each landmark for the rows around it."""
        if self.map.held is None:
            return None, None
        found = self.map.parts()
        if found.max() == 0:
            return None, None
        near = NearRows(self.map.held.rows, self.model.n_jobs)
        joined = join_parts(found, np.ones(self.map.size), self.rule.n_clusters, most, near, self.rule.least)
        return LandmarkParts(found, joined.part_of), joined

    def _rule(self, n_clusters: int, dtype: Any, random: np.random.RandomState) -> OrderRule:
        """The orders to try, from the one on that a sample of the pool proposes."""
        weights = self.source.weights
        if weights is None:
            weights = np.ones(self.source.n_rows or self.pool.rows.shape[0])
        rule = OrderRule.of(weights, n_clusters, orders_asked(self.model))
        if len(self.pool.distinct) <= n_clusters:
            rule = replace(rule, orders=rule.orders[:1])
        if len(rule.orders) == 1:
            return rule
        numbers = np.arange(len(self.pool.distinct))
        rows = self.pool.rows[self.pool.distinct]
        few = Vertices(rows, self.pool.distinct_weights, numbers, np.empty(0), numbers, False, None)
        return proposed(self.model, self.kernel, few, rule, self.n_columns, dtype, random)

    def run(self) -> FactoredTrial:
        """The fit at the order asked for, or at the least one that passes, with its third pass."""
        if self.model.order == "auto":
            found, reason = least_order(self.rule, self._attempt)
            tried = found.result
        else:
            tried, reason = self._tried(self.rule.orders[0], tested=False), "as asked for"
        if tried.finished is None:
            tried.finished = self._third_pass(tried)
        tried.fit = replace(tried.fit, order_reason=reason)
        self._warn(tried.fit.spectrum)
        return tried

    def _tried(self, order: float, *, tested: bool) -> FactoredTrial:
        passes = partial(self.source.chunks, progress=self.progress)
        if self._first is None:
            self._first = RowSums.of(self.map, passes, self.model.n_jobs)
        spectrum = factored_spectrum(
            self.map,
            passes,
            order,
            self.n_columns - 1,
            length=float(np.sqrt(np.abs(self.kernel.diagonal(self.pool.rows[:1000])).mean())),
            first=self._first,
            parts=self._parts,
            n_jobs=self.model.n_jobs,
        ).with_signs(self.pool.rows, self.pool.weights, self.model.n_jobs)
        fit = FactoredFit(spectrum, self.n_columns, self.pool, self.gamma, self.error, self.source.on_device)
        return FactoredTrial(fit, self._test(fit) if tested else None, None)

    def _test(self, fit: FactoredFit) -> Assignment | None:
        """The clusters of the pool by which an order is tested: unit rows, ten starts."""
        if len(self.pool.distinct) <= self.rule.n_clusters:
            return None
        return ASSIGNERS["kmeans"](
            unit_rows(fit.embed(self.pool.rows, self.model.n_jobs)),
            self.pool.weights,
            self.rule.n_clusters,
            n_init=TEST_STARTS,
            random_state=check_random(deepcopy(self.model.random_state)),
        )

    def _attempt(self, order: float, last: Attempt[FactoredTrial] | None) -> Attempt[FactoredTrial]:  # noqa: ARG002
        tried = self._tried(order, tested=True)
        unseen = tried.fit.spectrum.unseen
        refused = f"{unseen} rows are like no landmark or feature" if unseen else ""
        smallest = 0.0 if tried.tested is None else self.rule.smallest(tried.tested.labels, self.pool.weights)
        if not refused and smallest >= POOL_MARGIN * self.rule.least:
            tried.finished = self._third_pass(tried)
            smallest = float(tried.finished.sizes.min() / tried.finished.sizes.sum())
        return Attempt(order, smallest, tried, refused)

    def _third_pass(self, tried: FactoredTrial) -> Finished:
        """The embedding of rows that are held, and labels: those asked for, and those by which the order is tested."""
        fit, n_jobs = tried.fit, self.model.n_jobs
        rules: list[Labelling] = []
        if tried.tested is not None:
            tested = tried.tested.rule
            rules.append(lambda rows: tested.labels(unit_rows(rows)))  # type: ignore[union-attr]
        if self.assign is not None and tried.tested is not None and self.model._is_tested():
            tried.assignment = tried.tested
        elif self.assign is not None:
            tried.assignment, rule = self.assign(fit)
            rules.append(rule)
        if not rules and not self.source.held:
            return Finished(None, None, np.empty(0))
        embedding, labels = [], []
        sizes = np.zeros(self.rule.n_clusters)
        for X, w in self.source.chunks("labels" if rules else "embedding", self.progress):
            found, rows = fit.labels(X, rules, n_jobs, keep=self.source.held)
            if rows is not None:
                embedding.append(rows)
            if tried.tested is not None:
                sizes += np.bincount(found[0], to_host(w), len(sizes))
            if self.assign is not None:
                labels.append(found[-1] if self.source.held else found[-1].astype(np.int32))
        return Finished(
            np.concatenate(embedding) if self.source.held else None,
            np.concatenate(labels) if self.assign is not None else None,
            sizes,
        )

    def _warn(self, spectrum: FactoredSpectrum) -> None:
        _warn_about_unseen(spectrum)
        warn_about_null_columns(spectrum.informative, self.n_columns)
        if self._joined is not None and spectrum.order == 2:
            self._joined.warn(
                min(self.rule.n_clusters, self.n_columns),
                f"the kernel falls into {{n}} disconnected parts ({{shown}} of {self.map.size} landmarks)",
                parts_cure(self.gamma),
            )


def estimate_fit(model: Any, source: RowSource, gram: str, n_columns: int, device: Any = None) -> Cost:
    """Time and memory of a fit, from the speed of a block of rows; on a GPU, from what is known of one."""
    random = check_random(0)
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
        least = kernel.exact_columns(source.n_columns) or least
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
