"""The factored way: three passes over the rows, in memory or in Dask's chunks, on the host or on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.exceptions import ApproximationWarning, DataError, warn_user
from biclique.features.maps import FeatureMap, mapped_rows
from biclique.fit.choose import (
    Chosen,
    check_map_on_device,
    check_memory,
    choose_gram,
    choose_kernel,
    choose_precision,
    cut_and_label,
    starting_order,
)
from biclique.fit.fitted import Fitted, Known, Training
from biclique.fit.low_rank import FactoredSpectrum, RowSums, Solve, choose_map, factored_spectrum, pool_size
from biclique.fit.settings import Settings
from biclique.progress import Progress
from biclique.rows.array import Block, RowSource, Vertices, distinct_drawn
from biclique.rows.checks import check_clusters_fit, warn_about_spread
from biclique.runtime.arguments import check_random
from biclique.runtime.namespace import on_host, padded, to_host
from biclique.runtime.threads import run_panels
from biclique.spectral.assign import assign_sampled, one_each
from biclique.spectral.membership import Seen, some_rows
from biclique.spectral.rounding import Assignment, EmbeddingRule
from biclique.spectral.solver import warn_about_clipped, warn_about_null_columns


@dataclass(frozen=True)
class Mapped:
    """Rows with the feature map that was chosen for them, and the first pass over them."""

    chosen: Chosen
    map: FeatureMap
    pool: Vertices
    """Drawn rows, from which everything is chosen that is not a sum over all rows."""
    pool_rows: Rows
    """Those of the pool, as ``columns`` takes them."""
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


def map_kernel(settings: Settings, source: RowSource, random: np.random.RandomState, progress: Progress) -> Mapped:
    """Landmarks or features of a kernel."""
    gram, reason = choose_gram(settings, source, None)
    # Sources draw in ways of their own: what they use up must not shift what is drawn after.
    pool = distinct_drawn(*source.draw(pool_size(settings.rank), np.random.RandomState(random.randint(2**31))))
    if settings.n_clusters is not None:
        check_clusters_fit(settings.n_clusters, source.n_rows, source.n_counted)
    if source.n_counted < 2:
        raise DataError(f"X has {source.n_counted} rows that count: at least 2 are needed.")
    kernel, gamma = choose_kernel(settings, pool, random, source.columns)
    if kernel is None:
        raise TypeError("a factored K is that of a kernel")
    if source.device is not None:
        check_map_on_device(settings, gram, kernel, source.n_columns)
    precision = choose_precision(settings, gram, kernel, pool.data)
    chosen = Chosen(gram, reason, source.n_rows, kernel, gamma, source.columns, precision=precision)
    check_memory(settings, gram, pool.data, pool.n, chosen.dtype)
    if settings.kernel.euclidean:
        warn_about_spread(pool.data, source.names)
    orders = settings.orders_for(pool.n)
    found, error = choose_map(settings, chosen, orders[0], pool, random)
    progress.say(f"gram={found.name!r} of rank {found.size}: {error or 'exact'}")
    length = float(np.sqrt(np.abs(kernel.diagonal(pool.data[:1000])).mean()))
    first = RowSums.of(found, source, settings.n_jobs, progress)
    chosen = replace(chosen, rank=found.size, error=error)
    return Mapped(chosen, found, pool, pool.data, source, found, first, orders, length)


class _Cut(NamedTuple):
    """A cut at an order, and the embedding of the pool."""

    spectrum: FactoredSpectrum
    embedded: FloatArray  # (n_pool, n_columns)
    seen: np.ndarray  # (n_pool,)


def fit_factored(
    settings: Settings, source: RowSource, choose: Callable[..., Mapped], progress: Progress
) -> tuple[Fitted, Training]:
    """A factored K: sums, the small matrix, and what all rows get; ``choose`` draws rows and maps them."""
    settings, n_jobs = settings.seeded(), settings.n_jobs
    mapped = choose(settings, source, check_random(settings.random_state), progress)
    pool, columns = mapped.pool, settings.n_columns - 1

    def cut(order: float, last: _Cut | None) -> _Cut:  # noqa: ARG001
        spectrum = factored_spectrum(
            mapped.columns,
            mapped.rows,
            order,
            columns,
            length=mapped.length,
            first=mapped.first,
            solve=mapped.solve,
            n_jobs=n_jobs,
            progress=progress,
        )
        embedded, seen = spectrum.embed_seen(mapped.pool_rows, n_jobs)
        spectrum = replace(spectrum, map=mapped.map, keeps_tensors=source.device is not None)
        spectrum = spectrum.with_signs(embedded, pool.weights)
        return _Cut(spectrum, padded(to_host(embedded), settings.n_columns), seen)

    def label(found: _Cut) -> Assignment:
        if pool.n <= settings.n_groups:
            return one_each(found.spectrum.scaled(found.embedded, settings.scales_rows))
        return assign_sampled(
            settings.assign_labels,
            found.embedded,
            pool.weights,
            settings.n_groups,
            cut=None,
            n_init=settings.n_init,
            random_state=check_random(settings.random_state),
            order=None
            if settings.kernel.neighborhoods
            else starting_order(settings, pool.data),  # its pool is in order
            scale=lambda rows: found.spectrum.scaled(rows, settings.scales_rows),
            label_all=len(mapped.orders) > 1,
        )

    found, assignment, order, reason = cut_and_label(settings, mapped.orders, pool.weights, cut, label)
    chosen = replace(mapped.chosen, order=order, order_reason=reason)
    fitted = Fitted(
        settings=settings,
        chosen=chosen,
        eigenvalues=padded(found.spectrum.values, columns),
        residuals=padded(found.spectrum.residuals, columns),
        n_passes=3,
        points=found.spectrum,
    )
    _warn(settings, found.spectrum, pool.n)
    training = _third_pass(fitted, source, mapped, assignment, progress)
    if assignment is not None:
        some, short = some_rows(pool.n), settings.kernel.neighborhoods
        embedded = found.embedded[some]
        labels = fitted.labels_of_new(pool.data[some], n_jobs, (embedded, found.seen[some]))
        fitted.seen = Seen.of(embedded, labels, pool.weights[some], fitted.eigenvalues, order, short_steps=short)
    return fitted, training


def _third_pass(
    fitted: Fitted, source: RowSource, mapped: Mapped, assignment: Assignment | None, progress: Progress
) -> Training:
    """What every row gets: at once if rows are in memory, lazy if they are Dask's.

    The rule is kept, without clusters that have no rows: to count them in lazy labels takes a pass.
    """
    settings, n_jobs, n_distinct = fitted.settings, fitted.settings.n_jobs, mapped.pool.n
    spectrum = cast("FactoredSpectrum", fitted.points)
    if assignment is not None:
        _keep_rule(fitted, assignment.pointwise)
    own = replace(fitted, points=replace(spectrum, map=mapped.columns)).for_rows()

    if not source.in_memory:
        new = fitted.for_rows()
        embedding = source.later(lambda X: new.embed(X, n_jobs), settings.n_columns, np.float64, checked=True)
        if assignment is None:
            return Training(n_distinct, embedding)
        labels, sizes = mapped.rows.label(lambda X: own.labels(X, n_jobs), settings.n_groups, progress)
        _keep_rule(fitted, assignment.pointwise.keeping(np.flatnonzero(sizes)))
        return Training(n_distinct, embedding, labels, sizes=tuple(sizes[sizes > 0].tolist()))

    embedding = np.empty((source.n_rows, settings.n_columns))
    found = np.empty(source.n_rows, dtype=np.intp)

    def of_block(block: Block) -> None:
        there = slice(block.start, block.start + block.rows.shape[0])

        def of_piece(place: slice) -> None:
            X = block.rows[place]
            rows, seen = own.embed_new(X, 1)  # labels of tensors are found on their device
            embedding[there][place] = to_host(rows)
            if assignment is not None:
                found[there][place] = own.labels_of_new(X, 1, (rows, seen))

        step = mapped_rows(mapped.columns, block.rows, settings.n_columns)
        run_panels(of_piece, block.rows.shape[0], step, n_jobs=n_jobs if on_host(block.rows) else 1)

    mapped.rows.map(of_block, "labels", progress)
    if assignment is None:
        return Training(n_distinct, embedding)
    used = replace(assignment, labels=found).contiguous()
    _keep_rule(fitted, used.pointwise)
    return Training(n_distinct, embedding, used.labels)


def _keep_rule(fitted: Fitted, rule: EmbeddingRule) -> None:
    """The rule, and the labels of the landmarks, which rows take that no landmark sees."""
    fitted.rule, spectrum = rule, cast("FactoredSpectrum", fitted.points)
    if spectrum.landmarks.shape[0]:
        rows, _ = fitted.embed_new(spectrum.landmarks, fitted.settings.n_jobs)
        fitted.known = Known(labels=rule.labels(spectrum.scaled(rows, fitted.settings.scales_rows)))


def _warn(settings: Settings, spectrum: FactoredSpectrum, n_distinct: int) -> None:
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
