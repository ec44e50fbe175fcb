"""The factored way: three passes over the rows, in memory or read in chunks, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import ApproximationWarning, warn_user
from biclique.features.maps import FeatureMap
from biclique.fit.exact import proposed
from biclique.fit.low_rank import FactoredSpectrum, LandmarkParts, RowSums, choose_map, factored_spectrum
from biclique.fit.plan import Clusters, Plan, Result
from biclique.fit.settings import AssigningSettings
from biclique.gram import search_parts
from biclique.kernels import SAMPLE, Kernel, Nearby
from biclique.neighbors.index import NeighborIndex
from biclique.progress import Progress
from biclique.rows.array import Block, Pool, RowSource
from biclique.runtime import check_random
from biclique.runtime.namespace import on_host, padded, rows_on_host, to_host, unit_rows
from biclique.spectral import (
    ASSIGNERS,
    TEST_STARTS,
    Assignment,
    Attempt,
    EmbeddingRule,
    Joined,
    Linked,
    OrderRule,
    Rounding,
    Seen,
    join_parts,
    kmeans,
    least_order,
    near_rows,
    one_each,
    parts_cure,
    warn_about_clipped,
    warn_about_null_columns,
)
from biclique.spectral.cut import unshrunken_degrees

POOL_MARGIN = 0.5
"""A cluster of the pool with less than this share of what is needed is dust without a look at all rows."""


Labelling = Callable[[FloatArray], IntArray]
"""The labels of rows of an embedding."""


@dataclass(frozen=True)
class Finished:
    """The third pass over all rows."""

    embedding: FloatArray | None  # where rows are in memory
    labels: IntArray | None
    sizes: FloatArray
    """Weights of the clusters by which the order is tested."""
    counted: FloatArray | None = None
    """If labels are lazy: rows of every cluster, and their weights, (2, k)."""


@dataclass
class FactoredTrial:
    """A fit at one order; the third pass is made only if this may be the last order."""

    fitted: FactoredFitted
    tested: Assignment | None
    assignment: Assignment | None = None
    finished: Finished | None = None
    least: float = 0.0
    """The share of the weight below which a cluster is dust."""


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
        return self.labels_by(X, [labelling(self.rule, self.plan.settings.assigning)], n_jobs)[0][0]

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


def labelling(rule: EmbeddingRule, assigning: AssigningSettings) -> Labelling:
    """A rule on rows of the embedding, scaled as it needs them."""
    return lambda rows: rule.labels(unit_rows(rows) if assigning.scales_rows else rows)


class FactoredSearch:
    """Features chosen from a pool of rows; then fits at one order after the other, in two passes each."""

    def __init__(
        self, plan: Plan, source: RowSource, pool: Pool, random: np.random.RandomState, progress: Progress
    ) -> None:
        settings = plan.settings
        self.kernel: Kernel = plan.kernel_of_rows
        self.source, self.pool, self.progress = source, pool, progress
        self.n_jobs, self.n_columns = settings.n_jobs, settings.n_columns
        self.assigning, self.random_state = settings.assigning, settings.random_state
        self.rule = self._rule(plan, random)
        chosen = choose_map(replace(plan, orders=self.rule.orders), pool, random)
        self.map: FeatureMap = chosen.map
        self.plan = replace(plan, orders=self.rule.orders, rank=self.map.size, error=chosen.error)
        told = f": {chosen.error}" if chosen.error else ", exact"
        progress.say(f"gram={self.map.name!r} of rank {self.map.size}{told}")
        self._first: RowSums | None = None
        self._parts, self._joined = self._find_parts(min(settings.n_groups, self.n_columns))

    def _find_parts(self, most: int) -> tuple[LandmarkParts | None, Joined | None]:
        """The parts that landmarks fall into, joined as rows would be, each landmark for the rows around it."""
        landmarks = self.map.held
        if landmarks is None:
            return None, None
        rows = landmarks.rows.astype(np.float64)
        K = np.asarray(self.kernel.block(rows, rows), dtype=np.float64)
        found = search_parts(K, np.diagonal(K))
        if found.max() == 0:
            return None, None
        near = near_rows(landmarks.rows, self.kernel, self.n_jobs)
        joined = join_parts(found, np.ones(self.map.size), self.rule.n_clusters, most, near, self.rule.least)
        return LandmarkParts(found, joined.part_of), joined

    def _rule(self, plan: Plan, random: np.random.RandomState) -> OrderRule:
        """The orders to try, from the one on that a sample of the pool proposes."""
        mass = self.source.mass(self.pool.rows.shape[0])
        rule = OrderRule.of_sums(mass.n_rows, mass.total, mass.effective, plan.settings.n_groups, plan.orders)
        rule = replace(rule, orders=plan.orders)
        if len(rule.orders) == 1:
            return rule
        return proposed(plan.settings, self.kernel, self.pool.vertices, rule, plan.dtype, random)

    def run(self) -> FactoredTrial:
        """The fit at the order asked for, or at the least one that passes, with its third pass."""
        if self.plan.settings.cut.auto:
            found, reason = least_order(self.rule, self._attempt)
            tried, note = found.result, found.note
        else:
            tried, reason, note = self._tried(self.rule.orders[0], tested=False), "as asked for", ""
        if tried.finished is None:
            tried.finished = self._third_pass(tried)
        tried.fitted.plan = tried.fitted.plan.at_order(tried.fitted.spectrum.order, reason).changed(note)
        self._warn(tried.fitted.spectrum, unseen=not note)
        return tried

    def _tried(self, order: float, *, tested: bool) -> FactoredTrial:
        if self._first is None:
            self._first = RowSums.of(self.map, self.source, self.n_jobs, self.progress)
        spectrum = factored_spectrum(
            self.map,
            self.source,
            order,
            self.n_columns - 1,
            length=float(np.sqrt(np.abs(self.kernel.diagonal(self.pool.rows[:1000])).mean())),
            first=self._first,
            parts=self._parts,
            n_jobs=self.n_jobs,
            progress=self.progress,
        ).with_signs(self.pool.rows, self.pool.weights, self.n_jobs)
        fitted = FactoredFitted(self.plan, spectrum)
        return FactoredTrial(fitted, self._test(fitted) if tested else None, least=self.rule.least)

    def _test(self, fitted: FactoredFitted) -> Assignment | None:
        """The clusters of the pool by which an order is tested: unit rows, ten starts."""
        if self.pool.n_distinct <= self.rule.n_clusters:
            return None
        return kmeans(
            unit_rows(fitted.embed(self.pool.rows, self.n_jobs)),
            self.pool.weights,
            self.rule.n_clusters,
            n_init=TEST_STARTS,
            random_state=check_random(deepcopy(self.random_state)),
        )

    def _attempt(self, order: float, last: Attempt[FactoredTrial] | None) -> Attempt[FactoredTrial]:  # noqa: ARG002
        tried = self._tried(order, tested=True)
        spectrum = tried.fitted.spectrum
        few = order == 2 and spectrum.unseen_weight < self.rule.least * self.rule.total
        told = f"{spectrum.unseen} rows are like no landmark or feature" if spectrum.unseen else ""
        refused, note = ("", f"{told}: left out" if told else "") if few else (told, "")
        smallest = 0.0 if tried.tested is None else self.rule.smallest(tried.tested.labels, self.pool.weights)
        if not refused and smallest >= POOL_MARGIN * self.rule.least:
            tried.finished = self._third_pass(tried)
            smallest = float(tried.finished.sizes.min() / tried.finished.sizes.sum())
        return Attempt(order, smallest, tried, refused, note)

    def _assigned(self, tried: FactoredTrial, n_clusters: int) -> tuple[Assignment, Plan]:
        """An assignment of the pool, and the plan that says how its rows were scaled."""
        fitted, assigning, weights = tried.fitted, self.assigning, self.pool.weights
        tested = tried.tested if assigning.as_tested else None
        if tested is not None and not assigning.either_way:
            return tested, self.plan
        rows = fitted.embed(self.pool.rows, self.n_jobs)
        scaled = unit_rows(rows) if assigning.scales_rows else rows
        if self.pool.n_distinct <= n_clusters:
            return one_each(scaled[self.pool.distinct]), self.plan

        def assign(rows: FloatArray) -> Assignment:
            random = check_random(deepcopy(self.random_state))
            return ASSIGNERS[assigning.assign_labels].assign(
                rows, weights, n_clusters, n_init=assigning.n_init, random_state=random
            )

        if not assigning.either_way:
            return assign(scaled), self.plan

        rounding = Rounding(rows, fitted.eigenvalues, weights, n_clusters, assign, assigning.n_init)
        found, reason = rounding.clusters(tested, self._linked)
        return found, self.plan.with_rows_as_they_are(reason) if reason else self.plan

    def _linked(self) -> Linked | None:
        """Some of the pool's rows, linked to their nearest ones; None if landmarks fall into parts."""
        if self._parts is not None or not on_host(self.pool.rows):
            return None
        linked = Linked.of(Nearby.drawn(self.kernel, self.pool.rows[self.pool.distinct], SAMPLE, 0))
        return None if linked is None else Linked(self.pool.distinct[linked.places], linked.links)

    def _third_pass(self, tried: FactoredTrial) -> Finished:
        """The embedding of rows in memory, and labels: those asked for, and those by which the order is tested."""
        fitted, source, keep = tried.fitted, self.source, self.source.in_memory
        n_clusters, rules = self.assigning.n_clusters, list[Labelling]()
        if tried.tested is not None:
            tested = tried.tested.pointwise
            rules.append(lambda rows: tested.labels(unit_rows(rows)))
        if n_clusters is not None:
            tried.assignment, plan = self._assigned(tried, n_clusters)
            fitted.plan = plan
            if tried.assignment is not tried.tested:
                rules.append(labelling(tried.assignment.pointwise, plan.settings.assigning))
        if not rules and not keep:
            return Finished(None, None, np.empty(0))
        k, tested_too, n_jobs = self.rule.n_clusters, tried.tested is not None, self.n_jobs
        if source.lazy:
            return self._counted(fitted.for_rows(), rules, tested_too)

        def of_block(block: Block) -> tuple[FloatArray | None, NDArray[np.integer] | None, NDArray[Any]]:
            found, rows = fitted.labels_by(block.rows, rules, n_jobs, keep=keep)
            sizes = np.bincount(found[0], to_host(block.weights), k) if tested_too else np.zeros(k)
            labels = None if n_clusters is None else found[-1] if keep else found[-1].astype(np.int32)
            return rows, labels, sizes

        blocks = source.map(of_block, "labels" if rules else "embedding", self.progress)
        return Finished(
            np.concatenate([rows for rows, _, _ in blocks if rows is not None]) if keep else None,
            np.concatenate([labels for _, labels, _ in blocks if labels is not None]) if n_clusters else None,
            np.sum([sizes for _, _, sizes in blocks], axis=0),
        )

    def _counted(self, fitted: FactoredFitted, rules: list[Labelling], tested: bool) -> Finished:
        """The third pass if labels are computed later: rows and weights of every cluster."""
        k, n_jobs = max(self.rule.n_clusters, self.assigning.n_clusters or 0), self.n_jobs

        def of_block(block: Block) -> FloatArray:
            found, _ = fitted.labels_by(block.rows, rules, n_jobs)
            w = to_host(block.weights)
            return np.stack(
                [np.bincount(found[0], w, k), np.bincount(found[-1], None, k), np.bincount(found[-1], w, k)]
            )

        sums = self.source.sum(of_block, "labels", self.progress)
        return Finished(None, None, sums[0, : self.rule.n_clusters] if tested else np.empty(0), sums[1:])

    def _warn(self, spectrum: FactoredSpectrum, *, unseen: bool) -> None:
        if spectrum.unseen and unseen:
            warn_user(
                f"{spectrum.unseen} of {spectrum.n_rows} rows are like no landmark or feature (degree zero at order "
                f"{spectrum.order:g}), so their cluster is not known: use a higher order or rank, or lower gamma.",
                ApproximationWarning,
            )
        if self.kernel.takes_gaps:
            warn_about_clipped(self.map.n_negative, self.map.size, self.map.lowest, "κ of the landmarks")
        warn_about_null_columns(spectrum.informative, self.n_columns)
        if self._joined is not None and spectrum.order == 2:
            self._joined.warn(
                min(self.rule.n_clusters, self.n_columns),
                f"the kernel falls into {{n}} disconnected parts ({{shown}} of {self.map.size} landmarks)",
                parts_cure(self.plan.gamma),
            )


def fit_factored(
    plan: Plan, source: RowSource, pool: Pool, random: np.random.RandomState, progress: Progress
) -> Result:
    """Fit as planned: sums, the small matrix, and what all rows get."""
    tried = FactoredSearch(plan, source, pool, random, progress).run()
    fitted, finished = tried.fitted, tried.finished
    embedding, labels = (None, None) if finished is None else (finished.embedding, finished.labels)
    clusters, counted = None, None if finished is None else finished.counted
    # The rule is of the pool: that all rows may have fewer clusters shows only now.
    if tried.assignment is not None and labels is not None:
        found = replace(tried.assignment, labels=labels).contiguous()
        fitted.rule, labels = found.pointwise, found.labels.astype(labels.dtype, copy=False)
    elif tried.assignment is not None and counted is not None:
        used, sizes = np.flatnonzero(counted[0]), counted[1, : plan.settings.assigning.n_clusters]
        fitted.rule = tried.assignment.pointwise.keeping(used)
        clusters = Clusters(tuple(counted[0, used].astype(int).tolist()), float(sizes.min() / sizes.sum()), tried.least)
    if source.lazy:
        embedding, labels = _later(fitted, source)
    if fitted.rule is not None:
        rule = labelling(fitted.rule, fitted.plan.settings.assigning)
        (names,), rows = fitted.labels_by(pool.rows, [rule], plan.settings.n_jobs, keep=True)
        if rows is not None:
            fitted.seen = Seen.of(rows, names, pool.weights, fitted.eigenvalues)
    return Result(fitted, pool.n_distinct, embedding, labels, clusters=clusters)


def _later(fitted: FactoredFitted, source: RowSource) -> tuple[FloatArray, IntArray | None]:
    """The embedding and the labels of all rows, lazy."""
    light, settings = fitted.for_rows(), fitted.plan.settings
    embedding = source.later(
        lambda rows: light.embed(rows, settings.n_jobs), settings.n_columns, np.float64, checked=True
    )
    if fitted.rule is None:
        return embedding, None
    return embedding, source.later(lambda rows: light.labels(rows, settings.n_jobs), None, np.intp, checked=True)
