"""The data of a report: everything that the page shows, as plain values and small arrays."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import BicliqueError, DataError
from biclique.progress import Progress
from biclique.report.places import View, views_of
from biclique.report.rows import LEAST_POINTS, MOST_POINTS, Facts, Subject, look, picked, thinned, typical_rows
from biclique.report.sample import SAMPLE_LEAST, SAMPLE_ROWS, Sampled, sample_again
from biclique.report.shown_columns import YEAR, Coded, Columns, Sums, association
from biclique.runtime.namespace import on_host, to_host

COLOURED = 30
"""Columns that the map and the table of means can show."""

DIFFERENCES = 6
"""Columns that are named for every cluster."""

TYPICAL = 3
"""Typical rows that are named for every cluster."""

SAME = 5
"""Clusters that are named because they are one value of a column."""

BARS = 12
"""Bars of the distribution of a column of numbers."""

TAILS = 0.01
"""Share of the rows at each end of a column that are counted in its outermost bars."""

PROGRESS = "the report"
"""What progress calls this work: a look at all rows, similarities of a sample, stability, and the rest."""

Ids = Sequence[str | int] | Callable[[IntArray], Sequence[str | int]]
"""The id of every row, or a function of row numbers, ascending, that gives theirs."""


@dataclass(frozen=True)
class Difference:
    """How a cluster differs from the rest in one column."""

    column: str
    level: str | None  # of a category; ``own`` and ``rest`` are then shares of rows that have it
    effect: float  # (mean − mean of the rest)/standard deviation within both
    own: float
    rest: float
    used: bool = True  # whether the clusters were made from this column too, as far as is known


@dataclass(frozen=True)
class Shown:
    """A column that the map and the table of means can show."""

    coded: Coded  # of the rows that are drawn
    means: FloatArray | None  # of every cluster and of all rows, (k + 1,); None for a category
    shares: FloatArray  # of the rows of every cluster, and of all rows, in every bar or level, (k + 1, bars)


@dataclass(frozen=True)
class ReportData:
    """What a page shows."""

    title: str
    subject: Subject
    facts: Facts
    n_columns: int
    stability: FloatArray  # of every cluster; not a number if it is not known
    differences: list[list[Difference]]  # of every cluster, the largest first
    typical: list[list[str]]  # ids of typical rows of every cluster
    drawn: IntArray  # numbers of the rows that are drawn, ascending
    ids: list[str] | None  # of the drawn rows; None: their numbers
    views: list[View]
    columns: list[Shown]  # those that separate the clusters most
    origin: str  # what the clusters were made from, in words
    places: IntArray  # of the rows that were clustered anew, among those drawn
    sampled: Sampled
    notes: list[str]
    command: str


def gather(
    subject: Subject,
    X: Any,
    progress: Progress,
    table: Any = None,
    used: Collection[str] | None = None,
    ids: Ids | None = None,
    title: str | None = None,
    command: str | None = None,
    notes: Sequence[str] = (),
    n_splits: int = 0,
) -> ReportData:
    """Look at the rows of X, draw some, and compute what the page shows.

    ``used`` names the columns of the table from which the clusters were made; None if that is not known.
    """
    progress.share(PROGRESS, 0.0)
    random = np.random.RandomState(0)
    k, given, raw = subject.n_clusters, subject.given, table is None
    sums = Sums(k)
    facts = look(subject, X, sums if raw and not given else None)
    progress.share(PROGRESS, 0.2)
    n = facts.n_rows
    drawn = thinned(facts.labels, k, MOST_POINTS, LEAST_POINTS, random)
    names = None if ids is None else _named(ids, drawn, n)
    rows = picked(subject, X, drawn)
    host = rows if on_host(rows) else to_host(rows)
    labels = facts.labels[drawn]
    if raw:
        columns = drawn_columns = Columns.numbered(host[:, :0] if given else host, None if given else subject.names)
    else:
        columns = Columns.of(table)
        check_length(columns.numbers.shape[0], n)
        sums.add(columns.numbers, facts.labels)
        drawn_columns = columns.some(drawn)
    embedded = subject.fitted.embed(rows, subject.n_jobs)
    places = thinned(labels, k, SAMPLE_ROWS, SAMPLE_LEAST, random)
    some = host[places]
    sampled = Sampled(reason="X is not the matrix of the fit")
    if not given or host.shape[1] == n:
        sampled = sample_again(subject, some[:, drawn[places]] if given else some, labels[places])
    progress.share(PROGRESS, 0.4)
    stability, why = np.full(k, np.nan), []
    if n_splits > 0:
        try:
            stability = subject.stability(some, labels[places], n_splits)
        except (BicliqueError, ValueError, np.linalg.LinAlgError) as error:
            why = [f"Stability could not be computed: {error}"]
    progress.share(PROGRESS, 0.9)
    all_names = [*columns.names, *(one.name for one in columns.categories)]
    known = subject.names if used is None else used
    made_from = None
    if raw:
        made_from = set(all_names)
    elif known is not None:
        fitted = {str(name) for name in known}
        made_from = {name for name in all_names if name in fitted or name.removesuffix(YEAR) in fitted}
    levels = [Sums.of_levels(one, facts.labels, k) for one in columns.categories]
    differences = _differences(sums, levels, columns, k, made_from)
    shown_names = [f"row {row}" for row in drawn] if names is None else names
    typical = [[shown_names[j] for j in own] for own in typical_rows(embedded, labels, k, TYPICAL)]
    return ReportData(
        title or "Clusters",
        subject,
        facts,
        len(all_names),
        stability,
        differences,
        typical,
        drawn,
        names,
        views_of(host, embedded, drawn_columns, given=given, raw=raw),
        _shown(sums, levels, drawn_columns, labels, k),
        _origin(all_names, made_from, given=given),
        places,
        sampled,
        [*notes, *_notes(subject, facts, differences, " ".join(notes)), *why],
        command or f"{subject.kind}({', '.join(f'{a}={b!r}' for a, b in subject.parameters.items())}).fit(X)",
    )


def check_length(length: int, n: int) -> None:
    """Refuse a table of other rows than X."""
    if length != n:
        raise DataError(f"table has {length} rows, X has {n}: pass the same rows in the same order.")


def _named(ids: Ids, drawn: IntArray, n: int) -> list[str]:
    """The ids of the drawn rows."""
    if callable(ids):
        found = [str(name) for name in ids(drawn)]
        if len(found) != len(drawn):
            raise DataError(f"ids returned {len(found)} names for {len(drawn)} rows: return one for each row.")
        return found
    if len(ids) != n:
        raise DataError(f"ids has {len(ids)} entries, X has {n} rows: pass one for each row.")
    return [str(ids[row]) for row in drawn]


def _notes(subject: Subject, facts: Facts, differences: list[list[Difference]], known: str) -> list[str]:
    """What a reader should know, unless it is known from warnings."""
    counted, error = subject.counted, subject.fitted.chosen.error
    notes = []
    if counted is not None and counted.has_structure is False and counted.structure.reason not in known:
        notes.append(counted.structure.reason)
    if subject.asked != subject.n_clusters and f"{subject.asked} asked for" not in known:
        found = "1 cluster was" if subject.n_clusters == 1 else f"{subject.n_clusters} clusters were"
        notes.append(f"{found} found, {subject.asked} asked for.")
    if error is not None and str(error) not in known:
        notes.append(f"Similarities are approximate: {error}.")
    if np.isnan(facts.degrees).any():
        notes.append("Degrees are not known at order infinity: rows far from all others are not counted.")
    same = [
        f"{cluster} ({one.column} = {one.level or f'{one.own:.5g}'})"
        for cluster, found in enumerate(differences)
        for one in found
        if one.effect == np.inf and one.used
    ]
    if same:
        shown = ", ".join(same[:SAME]) + (", …" if len(same) > SAME else "")
        notes.append(f"Clusters that are exactly one value of a column: {shown}. Leave that column out?")
    return notes


# Columns


def _origin(names: list[str], used: set[str] | None, *, given: bool) -> str:
    """What the clusters were made from, and what differences in the columns therefore say."""
    proof = "differences are no proof that groups exist."
    if given and not names:
        return "The clusters were made from a matrix that was given."
    if given:
        made = f"The clusters were made from a matrix that was given. If that was computed from these columns, {proof}"
    elif used is None:
        made = f"These columns were given to be shown. If the clusters were made from them, {proof}"
    elif not used:
        made = "The clusters were made from other columns than these."
    elif len(used) == len(names):
        made = f"The clusters were made from these columns, so {proof}"
    else:
        made = (
            f"The clusters were made from {len(used):,} of these {len(names):,} columns, so {proof} The others are "
            "marked “not used”."
        )
    return f"Means of the cluster, means of the rest in brackets. {made}"


def _differences(
    sums: Sums, levels: list[Sums], columns: Columns, k: int, used: set[str] | None
) -> list[list[Difference]]:
    """For every cluster the columns in which it differs most from the rest; of a category its most telling level."""
    out: list[list[Difference]] = [[] for _ in range(k)]
    named: list[list[tuple[str, str | None]]] = [[(name, None) for name in columns.names]]
    named += [[(one.name, str(level)) for level in one.values] for one in columns.categories]
    for found, names in zip([sums, *levels], named, strict=True):
        sizes, most = (np.abs(sums.effects), DIFFERENCES) if found is sums else (found.effects, 1)
        numbers = np.stack([found.effects, found.means, found.other_means])  # (3, k, p)
        for cluster, own in enumerate(out):
            for place in np.argsort(-sizes[cluster], kind="stable")[:most]:
                if sizes[cluster, place] > 0:
                    name, level = names[place]
                    effect, mean, rest = numbers[:, cluster, place].tolist()
                    own.append(Difference(name, level, effect, mean, rest, used is None or name in used))
    return [sorted(found, key=lambda one: -abs(one.effect))[:DIFFERENCES] for found in out]


def _shown(sums: Sums, levels: list[Sums], drawn: Columns, labels: IntArray, k: int) -> list[Shown]:
    """The columns that separate the clusters most."""
    ranked = [(-float(share), 0, j) for j, share in enumerate(sums.separation)]
    ranked += [(-association(one.moments[1]), 1, j) for j, one in enumerate(levels)]
    means = np.vstack([sums.means, sums.all_means])  # (k + 1, p)
    out = []
    for _, kind, j in sorted(ranked)[:COLOURED]:
        if kind:
            out.append(Shown(drawn.categories[j], None, _shares(levels[j].moments[1])))
        else:
            column = drawn.numbers[:, [j]]
            values = np.asarray(column.toarray() if sparse.issparse(column) else column, dtype=float)[:, 0]
            bars = _shares(_bars(values, labels, k))
            out.append(Shown(Coded.of_numbers(drawn.names[j], values), means[:, j], bars))
    return out


def _bars(values: FloatArray, labels: IntArray, k: int) -> FloatArray:
    """How many values of every cluster lie in each of twelve bars of one width, (k, bars)."""
    there = np.isfinite(values)
    low, high = np.quantile(values[there], [TAILS, 1 - TAILS]) if there.any() else (0.0, 0.0)
    inner = np.linspace(low, high, BARS + 1)[1:-1]
    place = labels[there] * BARS + np.searchsorted(inner, values[there], side="right")
    return np.bincount(place, minlength=k * BARS).reshape(k, BARS).astype(float)


def _shares(counts: FloatArray) -> FloatArray:
    """Counts of every cluster as shares, and those of all rows below, (k + 1, bars)."""
    table = np.vstack([counts, counts.sum(axis=0)])
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), 1))
