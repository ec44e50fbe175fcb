"""The factored way: three passes over the rows, in memory or in Dask's chunks, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ApproximationWarning, DataError, warn_user
from biclique.features.maps import FeatureMap
from biclique.fit.choose import (
    Chosen,
    check_map_on_device,
    check_memory,
    choose_gram,
    choose_kernel,
    choose_precision,
)
from biclique.fit.fitted import Fitted, Training
from biclique.fit.low_rank import FactoredSpectrum, RowSums, Solve, choose_map, factored_spectrum, pool_size
from biclique.fit.settings import Settings
from biclique.neighbors.index import nearest_row
from biclique.progress import Progress
from biclique.rows.array import Block, Pool, RowSource
from biclique.rows.checks import check_clusters_fit, warn_about_spread
from biclique.runtime.arguments import check_random, fixed_seed
from biclique.runtime.namespace import padded, rows_on_host, to_host, unit_rows
from biclique.spectral.assign import assign_sampled, one_each
from biclique.spectral.cut import cluster_shares, least_order, unshrunken_degrees
from biclique.spectral.rounding import Assignment, EmbeddingRule, Seen
from biclique.spectral.solver import warn_about_clipped, warn_about_null_columns


@dataclass(kw_only=True)
class FactoredFitted(Fitted):
    """The embedding as a function of a point, and the rule for labels."""

    spectrum: FactoredSpectrum
    on_device: bool = False

    @classmethod
    def of(cls, settings: Settings, chosen: Chosen, spectrum: FactoredSpectrum, *, on_device: bool) -> FactoredFitted:
        """Of eigenpairs, before labels are assigned."""
        columns = settings.n_columns - 1
        return cls(
            settings=settings,
            chosen=chosen,
            eigenvalues=padded(spectrum.values, columns),
            residuals=padded(spectrum.residuals, columns),
            n_passes=3,
            spectrum=spectrum,
            on_device=on_device,
        )

    @property
    def keeps_tensors(self) -> bool:
        return self.on_device

    def for_rows(self) -> FactoredFitted:
        return replace(self.with_map(self.spectrum.map.for_rows()), seen=None)

    def with_map(self, found: FeatureMap) -> FactoredFitted:
        """The same for rows of which another map gives φ(x)."""
        return replace(self, spectrum=replace(self.spectrum, map=found))

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        return self.embed_seen(X, n_jobs)[0]

    def embed_seen(self, X: Rows, n_jobs: int | None) -> tuple[FloatArray, np.ndarray]:
        """The embedding of rows, with as many columns as were asked for, and which of them a landmark sees."""
        rows, seen = self.spectrum.embed_seen(X, n_jobs)
        return self._padded(rows), seen

    def _padded(self, rows: FloatArray) -> FloatArray:
        return padded(to_host(rows), self.settings.n_columns)

    def degrees(self, embedded: FloatArray) -> FloatArray:
        spectrum = self.spectrum
        return unshrunken_degrees(embedded[:, 0] ** 2 * spectrum.total, spectrum.mean_degree, spectrum.order)

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        return self.labels_of(X, *self.embed_seen(X, n_jobs), n_jobs)

    def labels_of(self, X: Rows, embedded: FloatArray, seen: np.ndarray, n_jobs: int | None) -> IntArray:
        """The labels of rows whose embedding is known; a row that no landmark sees takes that of its nearest one."""
        rule = cast("EmbeddingRule", self.known_rule())
        labels = rule.labels(self.scaled(embedded))
        unseen, landmarks = np.flatnonzero(~seen), self.spectrum.map.held
        if len(unseen) and landmarks is not None:
            asked = landmarks.hold(rows_on_host(X, unseen))
            places = nearest_row(landmarks.kernel, asked, landmarks.rows, n_jobs)
            of_landmarks = self._padded(self.spectrum.embed_landmarks(n_jobs))
            labels[unseen] = rule.labels(self.scaled(of_landmarks))[places]
        return labels

    def scaled(self, embedded: FloatArray) -> FloatArray:
        """Rows of an embedding as rules for labels take them."""
        return unit_rows(embedded) if self.settings.scales_rows else embedded


@dataclass(frozen=True)
class Mapped:
    """Rows with the feature map that was chosen for them, and the first pass over them."""

    chosen: Chosen
    map: FeatureMap
    pool: Pool
    rows: RowSource
    """Those of the source, or their columns, if these are stored."""
    columns: FeatureMap
    """The map of ``rows``."""
    first: RowSums
    orders: tuple[float, ...]
    """Tried in turn."""
    length: float = 0.0
    """A typical |φ(x)|, the scale of rounding."""
    solve: Solve | None = None


ChooseMap = Callable[[Settings, RowSource, np.random.RandomState, Progress], Mapped]
"""Draws rows, chooses a feature map for them, and makes the first pass."""


def map_kernel(settings: Settings, source: RowSource, random: np.random.RandomState, progress: Progress) -> Mapped:
    """Landmarks or features of a kernel."""
    gram, reason = choose_gram(settings, source, None)
    # Sources draw in ways of their own: what they use up must not shift what is drawn after.
    pool = Pool.of(*source.draw(pool_size(settings.rank), np.random.RandomState(random.randint(2**31))))
    n = pool.rows.shape[0]
    if settings.n_clusters is not None:
        check_clusters_fit(settings.n_clusters, source.n_rows, source.n_counted)
    if n < 2:
        raise DataError(f"X has {n} rows that count: at least 2 are needed.")
    kernel, gamma = choose_kernel(settings, pool.vertices, random, source.columns)
    if kernel is None:
        raise TypeError("a factored K is that of a kernel")
    if source.device is not None:
        check_map_on_device(settings, gram, kernel, source.n_columns)
    precision = choose_precision(settings, gram, kernel, pool.rows)
    chosen = Chosen(gram, reason, source.n_rows, kernel, gamma, source.columns, precision=precision)
    check_memory(settings, gram, pool.rows, n, chosen.dtype)
    if settings.kernel.euclidean:
        warn_about_spread(pool.rows, source.names)
    orders = settings.orders_for(pool.n_distinct)
    found, error = choose_map(settings, chosen, orders[0], pool, random)
    progress.say(f"gram={found.name!r} of rank {found.size}: {error or 'exact'}")
    length = float(np.sqrt(np.abs(kernel.diagonal(pool.rows[:1000])).mean()))
    first = RowSums.of(found, source, settings.n_jobs, progress)
    return Mapped(replace(chosen, rank=found.size, error=error), found, pool, source, found, first, orders, length)


_Attempt = tuple[FactoredFitted, Assignment | None, FloatArray, np.ndarray]
"""A fit at an order, its clusters, the embedding of the pool, and which rows of the pool are seen."""


def fit_factored(
    settings: Settings, source: RowSource, choose: ChooseMap, progress: Progress
) -> tuple[FactoredFitted, Training]:
    """A factored K: sums, the small matrix, and what all rows get."""
    seed, n_jobs, k = fixed_seed(settings.random_state), settings.n_jobs, settings.n_groups
    mapped = choose(settings, source, np.random.RandomState(seed), progress)
    pool, chosen, orders = mapped.pool, mapped.chosen, mapped.orders

    def attempt(order: float) -> tuple[FloatArray, int, _Attempt]:
        spectrum = factored_spectrum(
            mapped.columns,
            mapped.rows,
            order,
            settings.n_columns - 1,
            length=mapped.length,
            first=mapped.first,
            solve=mapped.solve,
            n_jobs=n_jobs,
            progress=progress,
        )
        spectrum = replace(spectrum, map=mapped.map)
        embedded, seen = spectrum.embed_seen(pool.rows, n_jobs)
        spectrum = spectrum.with_signs(embedded, pool.weights)
        fitted = FactoredFitted.of(settings, chosen, spectrum, on_device=source.device is not None)
        embedded = padded(embedded, settings.n_columns)
        if settings.n_clusters is None and len(orders) == 1:
            return np.ones(1), 1, (fitted, None, embedded, seen)
        assignment = _assign_pool(fitted, embedded, pool, k, seed)
        weights = pool.distinct_weights if pool.n_distinct <= k else pool.weights  # as _assign_pool labels them
        return cluster_shares(assignment.labels, weights, k), len(pool.weights), (fitted, assignment, embedded, seen)

    least = least_order(orders, k, attempt)
    fitted, assignment, embedded, seen = least.result
    reason = (chosen.order_reason or least.reason) if isinstance(settings.order, str) else "as asked for"
    fitted.chosen = replace(chosen, order=least.order, order_reason=reason)
    _warn(fitted, pool.n_distinct)
    labelled = None if settings.n_clusters is None else assignment
    training = _third_pass(fitted, source, mapped, labelled, progress)
    if labelled is not None:
        labels = fitted.labels_of(pool.rows, embedded, seen, n_jobs)
        fitted.seen = Seen.of(embedded, labels, pool.weights, fitted.eigenvalues)
    return fitted, training


def _assign_pool(fitted: FactoredFitted, embedded: FloatArray, pool: Pool, n_clusters: int, seed: int) -> Assignment:
    """Clusters of the pool, by the assigner that was asked for."""
    rows = fitted.scaled(embedded)
    if pool.n_distinct <= n_clusters:
        return one_each(rows[pool.distinct])
    return assign_sampled(
        fitted.settings.assign_labels,
        rows,
        pool.weights,
        n_clusters,
        cut=None,
        n_init=fitted.settings.n_init,
        random_state=check_random(seed),
    )


def _third_pass(
    fitted: FactoredFitted, source: RowSource, mapped: Mapped, assignment: Assignment | None, progress: Progress
) -> Training:
    """What every row gets: at once if rows are in memory, lazy if they are Dask's.

    The rule is kept, without clusters that have no rows: to count them in lazy labels takes a pass.
    """
    settings, n_jobs, n_distinct = fitted.settings, fitted.settings.n_jobs, mapped.pool.n_distinct
    own = replace(fitted.with_map(mapped.columns).for_rows(), rule=None if assignment is None else assignment.pointwise)

    def embed(X: Rows) -> FloatArray:
        return own.embed(X, n_jobs)

    def label(X: Rows) -> IntArray:
        return own.labels(X, n_jobs)

    if not source.in_memory:
        embedding = source.later(embed, settings.n_columns, np.float64, checked=True)
        if assignment is None:
            return Training(n_distinct, embedding)
        labels, sizes = source.label(label, settings.n_groups, progress)
        fitted.rule = assignment.pointwise.keeping(np.flatnonzero(sizes))
        return Training(n_distinct, embedding, labels, sizes=tuple(sizes[sizes > 0].tolist()))

    def of_block(block: Block) -> tuple[FloatArray, IntArray | None]:
        embedded, seen = own.embed_seen(block.rows, n_jobs)
        return embedded, None if assignment is None else own.labels_of(block.rows, embedded, seen, n_jobs)

    embedded, found = zip(*mapped.rows.map(of_block, "labels", progress), strict=True)
    embedding = np.concatenate(embedded)
    if assignment is None:
        return Training(n_distinct, embedding)
    used = replace(assignment, labels=np.concatenate(found)).contiguous()
    fitted.rule = used.pointwise
    return Training(n_distinct, embedding, used.labels)


def _warn(fitted: FactoredFitted, n_distinct: int) -> None:
    settings, spectrum = fitted.settings, fitted.spectrum
    if spectrum.unseen:
        warn_user(
            f"{spectrum.unseen} of {spectrum.n_rows} rows are like no landmark or feature (degree zero at order "
            f"{spectrum.order:g}), so their cluster is not known: use a higher order or rank, or lower gamma.",
            ApproximationWarning,
        )
    if settings.kernel.takes_gaps:
        warn_about_clipped(spectrum.map.n_negative, spectrum.map.size, spectrum.map.lowest, "κ of the landmarks")
    if n_distinct >= (settings.n_clusters or 0):  # fewer rows than clusters have a warning of their own
        warn_about_null_columns(spectrum.informative, settings.n_columns)
