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
from biclique.fit.low_rank import FactoredSpectrum, RowSums, choose_map, factored_spectrum, pool_size
from biclique.fit.settings import Settings
from biclique.neighbors.index import nearest_row
from biclique.progress import Progress
from biclique.rows.array import Pool, RowSource
from biclique.rows.checks import check_clusters_fit, warn_about_spread
from biclique.runtime.arguments import check_random, fixed_seed
from biclique.runtime.namespace import padded, rows_on_host, to_host, unit_rows
from biclique.spectral.assign import assign_sampled, one_each
from biclique.spectral.cut import cluster_shares, least_order, unshrunken_degrees
from biclique.spectral.rounding import Assignment, EmbeddingRule, Seen
from biclique.spectral.solver import warn_about_clipped, warn_about_null_columns

Labelling = Callable[[FloatArray], IntArray]
"""The labels of rows of an embedding."""


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
        return self._padded(self.spectrum.embed(X, n_jobs))

    def degrees(self, embedded: FloatArray) -> FloatArray:
        spectrum = self.spectrum
        return unshrunken_degrees(embedded[:, 0] ** 2 * spectrum.total, spectrum.mean_degree, spectrum.order)

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        rule = cast("EmbeddingRule", self.known_rule())
        return self.labels_by(X, [labelling(rule, self.settings)], n_jobs)[0][0]

    def _padded(self, rows: FloatArray) -> FloatArray:
        """Rows with as many columns as were asked for, on the host."""
        return padded(to_host(rows), self.settings.n_columns)

    def labels_by(self, X: Rows, rules: list[Labelling], n_jobs: int | None) -> tuple[list[IntArray], FloatArray]:
        """The labels of any rows by each of some rules, and their embedding.

        A row that no landmark sees takes the label of its nearest landmark.
        """

        def of_block(rows: FloatArray, seen: np.ndarray) -> tuple[np.ndarray, list[IntArray], FloatArray]:
            rows = self._padded(rows)
            return seen, [rule(rows) for rule in rules], rows

        blocks = self.spectrum.apply_seen(X, of_block, n_jobs)
        out = [np.concatenate([labels[j] for _, labels, _ in blocks]) for j in range(len(rules))]
        unseen = np.flatnonzero(~np.concatenate([seen for seen, _, _ in blocks]))
        landmarks = self.spectrum.map.held
        if len(unseen) and landmarks is not None and rules:
            asked, kernel = landmarks.hold(rows_on_host(X, unseen)), landmarks.kernel
            places = nearest_row(kernel, asked, landmarks.rows, n_jobs)
            embedded = self._padded(self.spectrum.embed_landmarks(n_jobs))
            for labels, rule in zip(out, rules, strict=True):
                labels[unseen] = rule(embedded)[places]
        return out, np.concatenate([rows for _, _, rows in blocks])


def labelling(rule: EmbeddingRule, settings: Settings) -> Labelling:
    """A rule on rows of the embedding, scaled as it needs them."""
    return lambda rows: rule.labels(unit_rows(rows) if settings.scales_rows else rows)


def fit_factored(settings: Settings, source: RowSource, progress: Progress) -> tuple[FactoredFitted, Training]:
    """Landmarks or features of a kernel: sums, the small matrix, and what all rows get."""
    seed, n_jobs = fixed_seed(settings.random_state), settings.n_jobs
    random = np.random.RandomState(seed)
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
    orders, k = settings.orders_for(pool.n_distinct), settings.n_groups
    found, error = choose_map(settings, chosen, orders[0], pool, random)
    chosen = replace(chosen, rank=found.size, error=error)
    progress.say(f"gram={found.name!r} of rank {found.size}: {error or 'exact'}")
    first = RowSums.of(found, source, n_jobs, progress)
    length = float(np.sqrt(np.abs(kernel.diagonal(pool.rows[:1000])).mean()))

    def attempt(order: float) -> tuple[FloatArray, int, tuple[FactoredFitted, Assignment | None]]:
        spectrum = factored_spectrum(
            found,
            source,
            order,
            settings.n_columns - 1,
            length=length,
            first=first,
            n_jobs=n_jobs,
            progress=progress,
        ).with_signs(pool.rows, pool.weights, n_jobs)
        fitted = FactoredFitted.of(settings, chosen, spectrum, on_device=source.device is not None)
        if settings.n_clusters is None and len(orders) == 1:
            return np.ones(1), 1, (fitted, None)
        assignment = assign_pool(fitted, pool, k, seed)
        weights = pool.distinct_weights if pool.n_distinct <= k else pool.weights  # as assign_pool labels them
        return cluster_shares(assignment.labels, weights, k), len(pool.weights), (fitted, assignment)

    least = least_order(orders, k, attempt)
    fitted, assignment = least.result
    reason = least.reason if isinstance(settings.order, str) else "as asked for"
    fitted.chosen = replace(chosen, order=least.order, order_reason=reason)
    _warn(fitted, kernel.takes_gaps)
    labelled = None if settings.n_clusters is None else assignment
    return fitted, third_pass(fitted, source, source, found, pool, found, labelled, progress)


def assign_pool(fitted: FactoredFitted, pool: Pool, n_clusters: int, seed: int) -> Assignment:
    """Clusters of the pool, by the assigner that was asked for."""
    settings = fitted.settings
    rows = fitted.embed(pool.rows, settings.n_jobs)
    scaled = unit_rows(rows) if settings.scales_rows else rows
    if pool.n_distinct <= n_clusters:
        return one_each(scaled[pool.distinct])
    return assign_sampled(
        settings.assign_labels,
        scaled,
        pool.weights,
        n_clusters,
        cut=None,
        n_init=settings.n_init,
        random_state=check_random(seed),
    )


def third_pass(
    fitted: FactoredFitted,
    source: RowSource,
    rows: RowSource,
    columns: FeatureMap,
    pool: Pool,
    pool_columns: FeatureMap,
    assignment: Assignment | None,
    progress: Progress,
) -> Training:
    """What every row gets: at once if rows are in memory, later if they are Dask's.

    ``columns`` is the map of ``rows``, which are those of the source, or what is kept of them; ``pool_columns`` that of
    the pool. The rule is kept, without clusters that have no rows.
    """
    settings, n_jobs = fitted.settings, fitted.settings.n_jobs
    rules = [] if assignment is None else [labelling(assignment.pointwise, settings)]
    own = fitted.with_map(columns).for_rows()
    if not source.in_memory:
        training = _later(fitted, own, source, pool.n_distinct, assignment, rules, progress)
    else:
        pieces = rows.map(lambda block: own.labels_by(block.rows, rules, n_jobs), "labels", progress)
        embedding, labels = np.concatenate([found for _, found in pieces]), None
        if assignment is not None:
            found = np.concatenate([found[0] for found, _ in pieces])
            used = replace(assignment, labels=found).contiguous()
            fitted.rule, labels = used.pointwise, used.labels
        training = Training(pool.n_distinct, embedding, labels)
    if fitted.rule is not None:
        of_pool = fitted.with_map(pool_columns)
        labels_of_pool = of_pool.labels(pool.rows, n_jobs)
        fitted.seen = Seen.of(of_pool.embed(pool.rows, n_jobs), labels_of_pool, pool.weights, fitted.eigenvalues)
    return training


def _later(
    fitted: FactoredFitted,
    own: FactoredFitted,
    source: RowSource,
    n_distinct: int,
    assignment: Assignment | None,
    rules: list[Labelling],
    progress: Progress,
) -> Training:
    """The embedding and the labels of all rows, lazy, and the sizes of the clusters, which take a pass."""
    settings, n_jobs = fitted.settings, fitted.settings.n_jobs
    sizes = labels = None
    if assignment is not None:
        labels, counted = source.label(
            lambda rows: own.labels_by(rows, rules, n_jobs)[0][0], settings.n_groups, progress
        )
        sizes = tuple(counted[counted > 0].tolist())
        fitted.rule = assignment.pointwise.keeping(np.flatnonzero(counted))
    light = fitted.for_rows()
    embedding = source.later(lambda rows: light.embed(rows, n_jobs), settings.n_columns, np.float64, checked=True)
    return Training(n_distinct, embedding, labels, sizes=sizes)


def _warn(fitted: FactoredFitted, takes_gaps: bool) -> None:
    spectrum = fitted.spectrum
    if spectrum.unseen:
        warn_user(
            f"{spectrum.unseen} of {spectrum.n_rows} rows are like no landmark or feature (degree zero at order "
            f"{spectrum.order:g}), so their cluster is not known: use a higher order or rank, or lower gamma.",
            ApproximationWarning,
        )
    if takes_gaps:
        warn_about_clipped(spectrum.map.n_negative, spectrum.map.size, spectrum.map.lowest, "κ of the landmarks")
    warn_about_null_columns(spectrum.informative, fitted.settings.n_columns)
