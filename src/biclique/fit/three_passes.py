"""The factored way: three passes over the rows, in memory or read in chunks, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ApproximationWarning, warn_user
from biclique.features.maps import FeatureMap
from biclique.fit.low_rank import FactoredSpectrum, RowSums, choose_map, factored_spectrum
from biclique.fit.plan import Clusters, Plan, Result
from biclique.fit.settings import Settings
from biclique.neighbors.index import NeighborIndex
from biclique.progress import Progress
from biclique.rows.array import Block, Pool, RowSource
from biclique.runtime import check_random
from biclique.runtime.namespace import padded, rows_on_host, to_host, unit_rows
from biclique.spectral.assign import assign_sampled, one_each
from biclique.spectral.cut import cluster_shares, least_order, unshrunken_degrees
from biclique.spectral.rounding import Assignment, EmbeddingRule, Seen
from biclique.spectral.solver import warn_about_clipped, warn_about_null_columns

Labelling = Callable[[FloatArray], IntArray]
"""The labels of rows of an embedding."""


@dataclass
class FactoredFitted:
    """The embedding as a function of a point, and the rule for labels."""

    plan: Plan
    spectrum: FactoredSpectrum
    rule: EmbeddingRule | None = None
    n_passes: int = 3
    takes_chunks: bool = True
    seen: Seen | None = None
    """Rows of the pool, for probabilities."""

    @property
    def eigenvalues(self) -> FloatArray:
        """Of B, descending; zero if K has no more."""
        return padded(self.spectrum.values, self.plan.settings.n_columns - 1)

    @property
    def residuals(self) -> FloatArray:
        """Of the eigenvalues."""
        return padded(self.spectrum.residuals, self.plan.settings.n_columns - 1)

    @property
    def keeps_tensors(self) -> bool:
        return self.plan.device is not None

    def for_rows(self) -> FactoredFitted:
        """The same, as small as can be, to embed and label rows elsewhere."""
        return replace(self, spectrum=replace(self.spectrum, map=self.spectrum.map.for_rows()), seen=None)

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        return self._padded(self.spectrum.embed(X, n_jobs))

    def degrees(self, embedded: FloatArray) -> FloatArray:
        spectrum = self.spectrum
        return unshrunken_degrees(embedded[:, 0] ** 2 * spectrum.total, spectrum.mean_degree, spectrum.order)

    def labels(self, X: Rows, n_jobs: int | None) -> IntArray:
        if self.rule is None:
            raise ValueError("no labels have been assigned")
        return self.labels_by(X, [labelling(self.rule, self.plan.settings)], n_jobs)[0][0]

    def _padded(self, rows: FloatArray) -> FloatArray:
        """Rows with as many columns as were asked for, on the host."""
        return padded(to_host(rows), self.plan.settings.n_columns)

    def labels_by(
        self, X: Rows, rules: list[Labelling], n_jobs: int | None, *, keep: bool = False
    ) -> tuple[list[IntArray], FloatArray | None]:
        """The labels of any rows by each of some rules; and their embedding, if it is to be kept whole.

        A row that no landmark sees takes the label of its nearest landmark.
        """

        def of_block(rows: FloatArray, seen: np.ndarray) -> tuple[np.ndarray, list[IntArray], FloatArray]:
            rows = self._padded(rows)
            return seen, [rule(rows) for rule in rules], rows if keep else rows[:0]

        blocks = self.spectrum.apply_seen(X, of_block, n_jobs)
        out = [np.concatenate([labels[j] for _, labels, _ in blocks]) for j in range(len(rules))]
        unseen = np.flatnonzero(~np.concatenate([seen for seen, _, _ in blocks]))
        landmarks = self.spectrum.map.held
        if len(unseen) and landmarks is not None and rules:
            asked, kernel = landmarks.hold(rows_on_host(X, unseen)), landmarks.kernel
            if kernel.euclidean:
                places = NeighborIndex(landmarks.rows, search="exact", n_jobs=n_jobs).query(asked, 1)[1][:, 0]
            else:
                places = kernel.nearest(asked, landmarks.rows)[1]
            embedded = self._padded(self.spectrum.embed_landmarks(n_jobs))
            for labels, rule in zip(out, rules, strict=True):
                labels[unseen] = rule(embedded)[places]
        return out, np.concatenate([rows for _, _, rows in blocks]) if keep else None


def labelling(rule: EmbeddingRule, settings: Settings) -> Labelling:
    """A rule on rows of the embedding, scaled as it needs them."""
    return lambda rows: rule.labels(unit_rows(rows) if settings.scales_rows else rows)


def fit_factored(
    plan: Plan, source: RowSource, pool: Pool, random: np.random.RandomState, progress: Progress
) -> Result:
    """Fit landmarks or features of a kernel as planned: sums, the small matrix, and what all rows get."""
    settings, n_jobs = plan.settings, plan.settings.n_jobs
    chosen = choose_map(plan, pool, random)
    progress.say(f"gram={chosen.map.name!r} of rank {chosen.map.size}: {chosen.error or 'exact'}")
    plan = replace(plan, rank=chosen.map.size, error=chosen.error)
    kernel, k = plan.kernel_of_rows, settings.n_groups
    first = RowSums.of(chosen.map, source, n_jobs, progress)
    length = float(np.sqrt(np.abs(kernel.diagonal(pool.rows[:1000])).mean()))

    def attempt(order: float) -> tuple[FloatArray, int, tuple[FactoredSpectrum, Assignment | None]]:
        spectrum = factored_spectrum(
            chosen.map,
            source,
            order,
            settings.n_columns - 1,
            length=length,
            first=first,
            n_jobs=n_jobs,
            progress=progress,
        ).with_signs(pool.rows, pool.weights, n_jobs)
        if settings.assigning.n_clusters is None and len(plan.orders) == 1:
            return np.ones(1), 1, (spectrum, None)
        found = assign_pool(FactoredFitted(plan, spectrum), pool, k)
        weights = pool.distinct_weights if pool.n_distinct <= k else pool.weights  # as assign_pool labels them
        return cluster_shares(found.labels, weights, k), len(pool.weights), (spectrum, found)

    found = least_order(plan.orders, k, attempt)
    spectrum, assignment = found.result
    reason = found.reason if settings.cut.auto else "as asked for"
    fitted = FactoredFitted(replace(plan, order=found.order, order_reason=reason), spectrum)
    if settings.assigning.n_clusters is None:
        assignment = None
    _warn(fitted, kernel.takes_gaps)
    return third_pass(fitted, source, source, chosen.map, pool, chosen.map, assignment, progress)


def assign_pool(fitted: FactoredFitted, pool: Pool, n_clusters: int) -> Assignment:
    """Clusters of the pool, by the assigner that was asked for."""
    settings = fitted.plan.settings
    rows = fitted.embed(pool.rows, settings.n_jobs)
    scaled = unit_rows(rows) if settings.scales_rows else rows
    if pool.n_distinct <= n_clusters:
        return one_each(scaled[pool.distinct])
    return assign_sampled(
        settings.assigning.assign_labels,
        scaled,
        pool.weights,
        n_clusters,
        cut=None,
        n_init=settings.assigning.n_init,
        random_state=check_random(deepcopy(settings.random_state)),
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
) -> Result:
    """What every row gets: at once if rows are in memory or in files, later if they are Dask's.

    ``columns`` is the map of ``rows``, which are those of the source, or what is kept of them; ``pool_columns`` that of
    the pool.
    """
    settings, n_jobs, n = fitted.plan.settings, fitted.plan.settings.n_jobs, pool.n_distinct
    rules = [] if assignment is None else [labelling(assignment.pointwise, settings)]
    embedding: FloatArray | None = None
    labels: Any = None
    clusters = None
    own = replace(fitted, spectrum=replace(fitted.spectrum, map=columns)).for_rows()
    if source.lazy and assignment is not None:
        k = settings.n_groups
        sizes = source.sum(lambda block: _cluster_sizes(own, block, rules, k, n_jobs), "labels", progress)
        clusters = Clusters(tuple(sizes[sizes > 0].astype(int).tolist()))
        fitted.rule = assignment.pointwise.keeping(np.flatnonzero(sizes))
    elif not source.lazy and (source.in_memory or rules):
        keep = source.in_memory
        pieces = rows.map(lambda block: own.labels_by(block.rows, rules, n_jobs, keep=keep), "labels", progress)
        if keep:
            embedding = np.concatenate([found for _, found in pieces if found is not None])
        if assignment is not None:
            used = replace(assignment, labels=np.concatenate([found[0] for found, _ in pieces])).contiguous()
            fitted.rule, labels = used.pointwise, used.labels if keep else used.labels.astype(np.int32)
    if source.lazy:
        embedding, labels = _later(fitted, source)
    if fitted.rule is not None:
        of_pool = replace(fitted, spectrum=replace(fitted.spectrum, map=pool_columns))
        labels_of_pool = of_pool.labels(pool.rows, n_jobs)
        fitted.seen = Seen.of(of_pool.embed(pool.rows, n_jobs), labels_of_pool, pool.weights, fitted.eigenvalues)
    return Result(fitted, n, embedding, labels, clusters=clusters)


def _cluster_sizes(
    fitted: FactoredFitted, block: Block, rules: list[Labelling], n_clusters: int, n_jobs: int | None
) -> FloatArray:
    """Rows of every cluster, (k,)."""
    return np.bincount(fitted.labels_by(block.rows, rules, n_jobs)[0][0], minlength=n_clusters).astype(float)


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
    warn_about_null_columns(spectrum.informative, fitted.plan.settings.n_columns)


def _later(fitted: FactoredFitted, source: RowSource) -> tuple[FloatArray, IntArray | None]:
    """The embedding and the labels of all rows, lazy."""
    light, settings = fitted.for_rows(), fitted.plan.settings
    embedding = source.later(
        lambda rows: light.embed(rows, settings.n_jobs), settings.n_columns, np.float64, checked=True
    )
    if fitted.rule is None:
        return embedding, None
    return embedding, source.later(lambda rows: light.labels(rows, settings.n_jobs), None, np.intp, checked=True)
