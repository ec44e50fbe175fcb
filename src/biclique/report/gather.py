"""The data of a report: everything that the page shows, as plain values and small arrays."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.impute import SimpleImputer

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import BicliqueError, DataError
from biclique.progress import Progress
from biclique.report.rows import LEAST_POINTS, MOST_POINTS, Facts, Subject, look, picked, thinned, typical_rows
from biclique.report.sample import SAMPLE_LEAST, SAMPLE_ROWS, Sampled, sample_again
from biclique.report.sentence import first_sentence
from biclique.report.shown_columns import YEAR, Category, Coded, Columns, Sums
from biclique.runtime.namespace import on_host, padded, to_host, unit_rows

COLOURED = 30
"""Columns that the map can show."""

DIFFERENCES = 6
"""Columns that are named for every cluster."""

TYPICAL = 3
"""Typical rows that are named for every cluster."""

AXIS_ROWS = 2_000
"""Rows from which the principal axes are found."""

PROGRESS = "the report"
"""What progress calls this work: a look at all rows, similarities of a sample, stability, and the rest."""

VERSIONS = ("numpy", "scipy", "scikit-learn")

Ids = Sequence[str | int] | Callable[[IntArray], Sequence[str | int]]
"""The id of every row, or a function of row numbers, ascending, that gives theirs."""


@dataclass(frozen=True)
class View:
    """Two coordinates of every drawn row."""

    name: str
    axes: tuple[str, str]
    places: FloatArray  # (n, 2)
    even: bool = True
    """Whether both axes have one scale."""


@dataclass(frozen=True)
class Difference:
    """How a cluster differs from the rest in one column."""

    column: str
    level: str | None
    """Of a category; ``own`` and ``rest`` are then shares of rows that have it."""
    effect: float
    """(mean − mean of the rest)/standard deviation within both."""
    own: float
    rest: float
    used: bool = True
    """Whether the clusters were made from this column too, as far as is known."""


@dataclass(frozen=True)
class Cluster:
    """One cluster in words and numbers."""

    number: int
    rows: int
    sure: float
    """Mean probability of its rows."""
    nowhere: int
    """Rows that fit nowhere well."""
    stability: float | None
    differences: list[Difference]
    typical: list[str]
    """Ids of typical rows."""


@dataclass(frozen=True)
class Shown:
    """A column that the map can show."""

    name: str
    separation: float
    coded: Coded
    is_category: bool


@dataclass(frozen=True)
class ReportData:
    """What a page shows."""

    title: str
    sentence: str
    subject: Subject
    n_rows: int
    n_columns: int
    facts: Facts
    clusters: list[Cluster]
    drawn: IntArray
    """Numbers of the rows that are drawn, ascending."""
    ids: list[str] | None
    """Of the drawn rows; None: their numbers."""
    views: list[View]
    columns: list[Shown]
    origin: str
    """What the clusters were made from, in words."""
    places: IntArray
    """Of the rows that were clustered anew, among those drawn."""
    sampled: Sampled
    n_splits: int
    notes: list[str]
    command: str
    versions: Mapping[str, str]


def gather(
    subject: Subject,
    X: Any,
    *,
    table: Any = None,
    used: Collection[str] | None = None,
    ids: Ids | None = None,
    title: str | None = None,
    command: str | None = None,
    n_splits: int = 10,
    notes: Sequence[str] = (),
    random_state: int = 0,
    progress: Progress | None = None,
) -> ReportData:
    """Look at the rows of X, draw some, and compute what the page shows.

    ``used`` names the columns of the table from which the clusters were made; None if that is not known.
    """
    progress = progress or Progress()
    progress.share(PROGRESS, 0.0)
    random = np.random.RandomState(random_state)
    given = subject.fitted.settings.kernel.given
    own = Sums(subject.n_clusters) if table is None and not given else None
    facts = look(subject, X, own)
    progress.share(PROGRESS, 0.2)
    n = len(facts.labels)
    drawn = thinned(facts.labels, subject.n_clusters, MOST_POINTS, LEAST_POINTS, random)
    named = None if ids is None else _named(ids, drawn, n)
    rows = picked(subject, X, drawn)
    host = rows if on_host(rows) else to_host(rows)
    labels = facts.labels[drawn]
    categories: list[Category] = []
    if table is not None:
        shown = Columns.of(table)
        check_length(shown.numbers.shape[0], n)
        own = Sums(subject.n_clusters)
        own.add(shown.numbers, facts.labels)
        drawn_columns, categories = shown.some(drawn), shown.categories
    elif given:
        drawn_columns = Columns([], host[:, :0], [])
    else:
        own_names = Columns.numbered(host.shape[1]) if subject.names is None else [str(name) for name in subject.names]
        drawn_columns = Columns(own_names, host, [])
    embedded = subject.fitted.embed(rows, subject.n_jobs)
    places = thinned(labels, subject.n_clusters, SAMPLE_ROWS, SAMPLE_LEAST, random)
    some = host[places]
    if given and host.shape[1] != n:
        sampled = Sampled(None, None, "X is not the matrix of the fit")
    else:
        again = some[:, drawn[places]] if given else some
        sampled = sample_again(subject, again, labels[places])
    progress.share(PROGRESS, 0.4)
    stability, why = _stability(subject, some, labels[places], n_splits)
    progress.share(PROGRESS, 0.9)
    names = [*drawn_columns.names, *(one.name for one in categories)]
    made_from = None if given else _used(subject, names, used, raw=table is None)
    differences = _differences(own, drawn_columns.names, categories, facts, subject.n_clusters)
    if made_from is not None:
        differences = [[replace(one, used=one.column in made_from) for one in found] for found in differences]
    typical = _typical(embedded, labels, subject.n_clusters, named, drawn)
    sure = np.bincount(facts.labels, facts.best, minlength=subject.n_clusters)
    nowhere = np.bincount(facts.labels, facts.nowhere, minlength=subject.n_clusters)
    clusters = [
        Cluster(
            j,
            int(size),
            float(sure[j] / max(size, 1)),
            int(nowhere[j]),
            None if stability is None or np.isnan(stability[j]) else float(stability[j]),
            differences[j],
            typical[j],
        )
        for j, size in enumerate(facts.sizes)
    ]
    all_notes = [*notes, *_notes(subject, facts, " ".join(notes)), *([why] if why else [])]
    return ReportData(
        title or "Clusters",
        first_sentence(subject, facts),
        subject,
        n,
        len(names),
        facts,
        clusters,
        drawn,
        named,
        _views(host, embedded, drawn_columns, given=given, raw=table is None),
        _columns(own, drawn_columns, categories, facts, subject.n_clusters),
        _origin(names, made_from, given=given),
        places,
        sampled,
        0 if stability is None else n_splits,
        all_notes,
        command or _python(subject),
        _versions(),
    )


def _versions() -> dict[str, str]:
    others = {name: version(name) for name in VERSIONS}
    return {"biclique": import_module("biclique").__version__, "Python": platform.python_version(), **others}


def check_length(length: int, n: int) -> None:
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


def _stability(subject: Subject, rows: Rows, labels: IntArray, n_splits: int) -> tuple[FloatArray | None, str]:
    """Of every cluster, on some rows; or why not."""
    if n_splits == 0:
        return None, ""
    try:
        return subject.stability(rows, labels, n_splits), ""
    except (BicliqueError, ValueError, np.linalg.LinAlgError) as error:
        return None, f"Stability could not be computed: {error}"


def _notes(subject: Subject, facts: Facts, known: str) -> list[str]:
    """What a reader should know, unless it is known from warnings."""
    counted, error = subject.counted, subject.fitted.chosen.error
    notes = []
    if counted is not None and counted.has_structure is False and counted.structure.reason not in known:
        notes.append(counted.structure.reason)
    asked = subject.parameters.get("n_clusters", subject.n_clusters) if counted is None else subject.n_clusters
    if asked != subject.n_clusters and f"{asked} asked for" not in known:
        notes.append(f"{subject.n_clusters} clusters were found, {asked} asked for.")
    if error is not None and str(error) not in known:
        notes.append(f"Similarities are approximate: {error}.")
    if np.isnan(facts.degrees).any():
        notes.append("Degrees are not known at order infinity: rows far from all others are not counted.")
    return notes


def _python(subject: Subject) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in subject.parameters.items())
    return f"{subject.kind}({given}).fit(X)"


# Columns


def _used(subject: Subject, names: list[str], used: Collection[str] | None, *, raw: bool) -> set[str] | None:
    """The columns, among those that are shown, from which the clusters were made; None if that is not known."""
    if raw:
        return set(names)
    known = subject.names if used is None else used
    if known is None:
        return None
    fitted = {str(name) for name in known}
    return {name for name in names if name in fitted or name.removesuffix(YEAR) in fitted}


def _origin(names: list[str], used: set[str] | None, *, given: bool) -> str:
    """What the clusters were made from, and what differences in the columns therefore say."""
    if given:
        after = " If that was computed from these columns, differences are no proof that groups exist." if names else ""
        return f"The clusters were made from a matrix that was given.{after}"
    if used is None:
        return (
            "These columns were given to be shown. If the clusters were made from them, differences are no proof that "
            "groups exist."
        )
    if len(used) == len(names):
        return "The clusters were made from these columns, so differences are no proof that groups exist."
    if not used:
        return "The clusters were made from other columns than these."
    return (
        f"The clusters were made from {len(used):,} of these {len(names):,} columns, so differences in them are no "
        "proof that groups exist. The others are marked “not used”."
    )


def _differences(
    sums: Sums | None, names: list[str], categories: list[Category], facts: Facts, k: int
) -> list[list[Difference]]:
    """For every cluster the columns in which it differs most from the rest."""
    out: list[list[Difference]] = [[] for _ in range(k)]
    tables: list[tuple[list[tuple[str, str | None]], Sums]] = []
    if sums is not None and sums.sums.shape[1]:
        tables.append(([(name, None) for name in names], sums))
    tables += [
        ([(one.name, level) for level in one.levels], Sums.of_levels(one.codes, len(one.levels), facts.labels, k))
        for one in categories
        if one.levels
    ]
    for columns, found in tables:
        numbers = np.stack([found.effects, found.means, found.other_means])  # (3, k, p)
        for cluster in range(k):
            size = np.where(np.isnan(numbers[0, cluster]), 0.0, np.abs(numbers[0, cluster]))
            for place in np.argsort(-size, kind="stable")[:DIFFERENCES]:
                if size[place] > 0:
                    out[cluster].append(Difference(*columns[place], *numbers[:, cluster, place].tolist()))
    return [sorted(found, key=lambda one: -abs(one.effect))[:DIFFERENCES] for found in out]


def _columns(sums: Sums | None, drawn: Columns, categories: list[Category], facts: Facts, k: int) -> list[Shown]:
    """The columns that separate the clusters most."""
    shares = [] if sums is None or not sums.sums.shape[1] else sums.separation.tolist()
    ranked = [(-share, 0, j) for j, share in enumerate(shares)]
    ranked += [(-one.separation(facts.labels, k), 1, j) for j, one in enumerate(categories)]
    out = []
    for share, kind, j in sorted(ranked)[:COLOURED]:
        if kind:
            one = drawn.categories[j]
            out.append(Shown(one.name, -share, Coded.of_category(one), True))
        else:
            column = drawn.numbers[:, [j]]
            values = (column.toarray() if sparse.issparse(column) else np.asarray(column))[:, 0]
            out.append(Shown(drawn.names[j], -share, Coded.of_numbers(values), False))
    return out


def _typical(embedded: FloatArray, labels: IntArray, k: int, ids: list[str] | None, drawn: IntArray) -> list[list[str]]:
    """Ids of typical rows, among those drawn."""
    found = typical_rows(embedded, labels, k, TYPICAL)
    return [[f"row {drawn[j]}" if ids is None else ids[j] for j in own] for own in found]


# Coordinates


def _views(rows: Rows, embedded: FloatArray, columns: Columns, *, given: bool, raw: bool) -> list[View]:
    """Where the points lie: by similarity, and by the columns themselves."""
    by_similarity = View("by similarity", ("", ""), principal(unit_rows(embedded)))
    if given:
        return [by_similarity]
    if rows.shape[1] == 2 and not sparse.issparse(rows):
        names = (columns.names[0], columns.names[1]) if len(columns.names) == 2 else ("", "")
        places = filled(columns.numbers if len(columns.names) == 2 and not raw else rows)
        return [View("the two columns", names, places, even=False), by_similarity]
    by_columns = View("by the columns (two principal components)", ("", ""), principal(rows))
    return [by_columns, by_similarity] if embedded.shape[1] < 3 else [by_similarity, by_columns]


def principal(rows: Rows) -> FloatArray:
    """The two leading principal components of rows, (n, 2); of sparse rows not centred."""
    n, d = rows.shape
    if sparse.issparse(rows):
        if min(n, d) < 4:
            return principal(rows.toarray())
        left, values, _ = svds(rows.astype(float), k=2, v0=np.ones(min(n, d)))
        order = np.argsort(-values)
        return _signed(left[:, order] * values[order])
    table = filled(rows)
    table = table - table.mean(axis=0)
    some = table[:: max(1, n // AXIS_ROWS)]
    if d > len(some):
        axes = some.T @ np.linalg.eigh(some @ some.T)[1][:, ::-1][:, :2]
        axes = axes / np.maximum(np.linalg.norm(axes, axis=0), np.finfo(float).tiny)
    else:
        axes = np.linalg.eigh(some.T @ some)[1][:, ::-1][:, :2]
    return _signed(padded(table @ axes, 2))


def filled(rows: Rows) -> FloatArray:
    """Missing values replaced by the mean of their column, 0 if it has none."""
    table = np.asarray(rows, dtype=float)
    finite = np.where(np.isfinite(table), table, np.nan)
    return np.asarray(SimpleImputer(keep_empty_features=True).fit_transform(finite))


def _signed(places: FloatArray) -> FloatArray:
    """The same picture on every machine: the sum of cubes of every coordinate is not negative."""
    return places * np.where((places**3).sum(axis=0) < 0, -1.0, 1.0)
