"""``biclique cluster`` for tables that are read in chunks and are never all in memory."""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biclique._typing import FloatArray, IntArray, Rows
from biclique.cli.common import (
    Classes,
    Facts,
    caught_messages,
    check_rows,
    column_scale,
    constant_note,
    needs_memory,
    print_estimate,
    progress_of,
    report,
)
from biclique.cli.output import EXIT_OK, line
from biclique.cli.predict_command import save_run
from biclique.cli.report_command import write_report
from biclique.cli.table_options import form_of, names_of
from biclique.cli.table_rows import notes_of, preparer_of, probabilities_of
from biclique.cluster import BicliqueSpectralClustering
from biclique.exceptions import DataError, MemoryLimitError, ParameterError, TableError, printable
from biclique.io import (
    CHUNK_ROWS,
    ArrayChunks,
    ChunkSource,
    Column,
    FiniteChunks,
    LabelWriter,
    Roles,
    ScaledChunks,
    TableFormat,
    TablePreparer,
    column_moments,
    find_format,
    formats,
    listed,
    open_chunks,
    open_columns,
)
from biclique.io.label_files import NewColumns, append_labels, text_fields
from biclique.io.prepare_chunks import PreparedChunks, fit_chunks
from biclique.io.prepare_columns import about_ids
from biclique.progress import Progress
from biclique.rows.array import OPENERS, Block, Check, Opener, RowSource, drawn
from biclique.rows.checks import check_values, check_weights
from biclique.runtime import format_bytes, parse_memory_limit

QUARTILE_VALUES = 2**24  # of a sample of rows that gives medians and quartiles
TELLING_ROWS = 20_000  # of a sample that shows what sets clusters apart
PASSES = 4  # for the scale, and three of a fit
ESTIMATE_ROWS = 10_000  # of a sample that says how to scale, for an estimate
ESTIMATE_CHUNKS = 3


# Whether to stream


def open_streamed(model: BicliqueSpectralClustering, options: argparse.Namespace) -> ChunkSource | None:
    """The table if it is to be read in chunks; None if it is to be read whole."""
    path = Path(options.table)
    kind = find_format(path)
    if kind is None or kind.chunks is None:
        if options.stream:
            raise TableError(
                f"{options.shown_table}: --stream reads {_chunk_files()}; convert the table to one of these, or leave "
                "out --stream to read it whole."
            )
        return None
    barrier = needs_memory(model)
    if options.stream and barrier is not None:
        raise ParameterError(f"--stream does not work with {barrier[0]}, which needs the rows in memory: {barrier[1]}.")
    if path.is_dir() and kind.place == "both" and not options.stream:
        return None  # a folder of files is read whole
    if (
        kind.place == "folder"
    ):  # of Zarr: what its tasks that were not done say at the end, after an error that is ours to report
        logging.getLogger("asyncio").addHandler(logging.NullHandler())
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    if options.stream and (mixed := _open_mixed(path, kind, options)) is not None:
        mixed.require_labels(options.memory_limit)
        return mixed
    if not options.stream and _asks_for_columns(options):
        return None
    roles = Roles(options.label_column, options.id[0] if options.id else None, tuple(options.drop))
    limit = parse_memory_limit(options.memory_limit)
    with Progress.of(model.verbose) as progress:
        try:
            source = open_chunks(
                path,
                roles=roles,
                memory_limit=options.memory_limit,
                form=form_of(options),
                tick=lambda share: progress.share("counting the rows", share),
            )
        except TableError:
            if options.stream:
                raise
            return None  # held, every column is looked at before an error
        source.advice = "leave those rows out with --drop-missing, or a column with --drop"
        if options.stream:
            source.require_labels(options.memory_limit)
            return source
        needed = source.held_bytes
        if needed <= limit / 2:
            return None
        needed = 8 * (source.n_rows or 0) * source.n_columns
    size = (
        f"{options.shown_table}: {source.n_rows} rows of {source.n_columns} columns would take {format_bytes(needed)}"
    )
    if barrier is None:
        source.require_labels(options.memory_limit)
        if not options.quiet:
            line(
                f"biclique: {size}, more than half of the memory limit ({format_bytes(limit)}); they are read in "
                "chunks, as with --stream.",
                sys.stderr,
            )
        return _open_mixed(path, kind, options) or source
    if needed > limit:
        raise MemoryLimitError(
            f"{size}, limit {format_bytes(limit)}, and {barrier[0]} needs them in memory: {barrier[1]}, or raise "
            "--memory-limit."
        )
    return None


def _preparer(
    scaled: ChunkSource, names: list[str], mixed: PreparedChunks | None, options: argparse.Namespace
) -> TablePreparer:
    """What makes rows of the fit of a table: it is saved with the model."""
    if mixed is not None:
        return mixed.preparer
    if isinstance(scaled, ScaledChunks):
        return TablePreparer.of_scale(names, options.scale, scaled.offset, 1 / scaled.factor)
    return TablePreparer.of_scale(names)


def _asks_for_columns(options: argparse.Namespace) -> list[str]:
    """The options that tell columns apart by name: a source of numbers cannot do what they ask for."""
    asked = {
        "--columns": options.columns,
        "--categorical": options.categorical,
        "--weight": options.weight,
        "--append": options.append,
        "--missing": options.missing not in ("refuse", "drop"),
        "--dates": options.dates != "refuse",
        "several --id": len(options.id) > 1 or (options.id and "," in options.id[0]),
        "--drop with commas": any("," in name for name in options.drop),
    }
    return [option for option, value in asked.items() if value]


def _open_mixed(path: Path, kind: TableFormat, options: argparse.Namespace) -> PreparedChunks | None:
    """Rows with categories, dates, booleans or gaps to fill, after a pass over them; None for numbers alone."""
    asked = _asks_for_columns(options)
    if kind.open_columns is None or path.is_dir():
        if asked:
            raise ParameterError(
                f"{options.table}: {asked[0]} does not work with --stream for {kind.name}, which is read as numbers "
                "alone: leave one of them out, or convert the table to Parquet or CSV."
            )
        return None
    with progress_of(options) as progress:
        tick = partial(progress.share, "reading the table")
        columns = open_columns(path, form_of(options), memory_limit=options.memory_limit, tick=tick)
    preparer = preparer_of(columns.name, list(columns.kinds), options)
    used = {str(name) for name in preparer.columns or columns.kinds} - {str(name) for name in preparer.drop}
    if not asked and all(columns.kinds[name] == "number" for name in used):
        return None
    with caught_messages() as messages, progress_of(options) as progress:
        fit_chunks(preparer, columns, partial(progress.share, "pass over the columns"))
    fields = partial(text_fields, path, form_of(options)) if kind.is_text else None
    mixed = PreparedChunks(columns, preparer, fields)
    mixed.notes = (*notes_of(options), *messages)
    return mixed


def _chunk_files() -> str:
    """``.npy and Parquet files and .zarr folders``."""
    kinds = formats(in_chunks=True)
    files, folders = (
        listed([kind.name for kind in kinds if (kind.place == "folder") is folder], "and") for folder in (False, True)
    )
    return f"{files} files and {folders} folders"


# The work


def cluster(model: BicliqueSpectralClustering, table: ChunkSource, options: argparse.Namespace) -> int:
    """Fit, write the labels, print."""
    table.name = printable(options.shown_table)
    mixed = table if isinstance(table, PreparedChunks) else None
    source = FiniteChunks(table) if options.missing == "drop" and mixed is None else table
    if options.dry_run:
        return _print_estimate(model, table, source, options)
    start = time.perf_counter()
    _check_rows(table, table.n_rows, options)
    if mixed is not None and mixed.preparer.categorical_places_:
        model.set_params(categorical_features=mixed.preparer.categorical_places_)
    with Progress.of(model.verbose) as progress:
        scaled, notes = _scaled(source, options, progress)
    notes += [] if mixed is not None else _about_ids(source)  # the fit of its preparer has told that
    _check_rows(table, source.n_rows, options)
    weights = None if options.weight is None or mixed is None else mixed.weights(options.weight)
    with caught_messages() as messages:
        model.fit(scaled) if weights is None else model.fit(scaled, sample_weight=weights)
    seconds = time.perf_counter() - start
    kept = source.kept if isinstance(source, (FiniteChunks, PreparedChunks)) else None
    with Progress.of(model.verbose) as progress:
        classes = _read_classes(table, options.label_column, kept, progress)
    with Progress.of(model.verbose) as progress:
        if (
            options.output
            and mixed is not None
            and (options.append or len(options.id) > 1 or "," in "".join(options.id))
        ):
            notes += _append(model, mixed, options)
        elif options.output:
            _write(options, model.labels_, table, kept, progress)
    if options.report:
        with Progress.of(model.verbose) as progress:
            ids = _row_names(table, _id_column(table, options), kept, progress)
            used = source.columns or [f"x{j}" for j in range(source.n_columns)]  # all that the source gives
            write_report(model, scaled, options, [*messages, *notes], source, used, ids)
    seen, numbers = source.draw(min(TELLING_ROWS, len(model.labels_)), np.random.RandomState(options.seed))
    codes = [] if mixed is None else mixed.preparer.categorical_places_  # codes are no quantities
    told = {j: name for j, name in enumerate(table.names) if j not in codes}
    facts = Facts(
        table.name,
        len(model.labels_),
        table.n_table_rows - len(model.labels_),
        table.n_used,
        classes,
        True,
        seen[:, [*told]].astype(float),
        numbers,
        [*told.values()],
    )
    saved = None
    if options.save is not None:
        named = options.id if mixed is None else names_of(mixed.name, "--id", options.id, list(mixed.table.kinds))
        saved = save_run(model, _preparer(scaled, table.names, mixed, options), options, named)
    meant = notes_of(options) if mixed is None else mixed.notes
    report(model, facts, options, seconds, [*messages, *notes, *meant], saved)
    return EXIT_OK


def _append(model: BicliqueSpectralClustering, mixed: PreparedChunks, options: argparse.Namespace) -> list[str]:
    """The table with its labels, or its ids with them; what there is to say about that."""
    kept = np.ones(mixed.n_table_rows, dtype=bool) if mixed.kept is None else mixed.kept
    if options.append:
        probabilities, notes = probabilities_of(model, mixed)
        new = NewColumns(kept, model.labels_, probabilities)
        append_labels(options.output, mixed.table, new, Path(options.table), form_of(options))
        return notes
    names = names_of(mixed.name, "--id", options.id, list(mixed.table.kinds))
    append_labels(options.output, mixed.only(names), NewColumns(kept, model.labels_))
    return []


def _check_rows(table: ChunkSource, n_rows: int | None, options: argparse.Namespace) -> None:
    """Refuse fewer rows than can be clustered; ``n_rows`` are those that are not left out."""
    if n_rows is None:
        return
    check_rows(table.name, n_rows, table.n_rows or n_rows)
    clusters = options.clusters
    if not isinstance(clusters, str) and n_rows < clusters:
        raise DataError(f"X has {n_rows} rows, fewer than n_clusters={clusters}: ask for at most {n_rows} clusters.")


def _scaled(source: ChunkSource, options: argparse.Namespace, progress: Progress) -> tuple[ChunkSource, list[str]]:
    """The rows, scaled as those in memory are, and what there is to say about the columns: one pass."""
    mean, deviation, n = column_moments(source, lambda share: progress.share("pass over the rows for the scale", share))
    names = source.names
    notes = constant_note([names[j] for j in np.flatnonzero(deviation == 0)])
    if options.scale == "none" or isinstance(source, PreparedChunks):
        return source, notes
    size = max(QUARTILE_VALUES // source.n_columns, 10_000)
    random = np.random.RandomState(options.seed)
    offset, scale, told = column_scale(
        options.scale, mean, deviation, n, size, lambda rows: source.sample(rows, random)
    )
    try:
        with np.errstate(divide="ignore", over="ignore"):
            return ScaledChunks(source, offset, 1 / scale), notes + told
    except ParameterError as error:
        raise DataError(
            f"{source.name}: values too large or too small to scale; rescale the columns first, or use --scale none."
        ) from error


def _about_ids(source: ChunkSource) -> list[str]:
    """What the first rows say of columns that look like ids."""
    first = np.array(next(iter(source.chunks())))
    columns = [Column(name, "number", values) for name, values in zip(source.names, first.T, strict=True)]
    return about_ids(columns, whole=len(first) == source.n_rows)


def _texts(source: ChunkSource, name: str, what: str, progress: Progress) -> Iterator[tuple[slice, list[str]]]:
    """A column chunk by chunk, with the rows it is of."""
    start, n = 0, source.n_table_rows
    for texts in source.texts(name):
        yield slice(start, start + len(texts)), texts
        start += len(texts)
        progress.share(f"pass over the rows for the {what}", start / n)
    if start != n:
        raise TableError(
            f"{source.name}: {start} rows came in this pass, {n} before; leave it as it is until the work is done."
        )


def _read_classes(
    source: ChunkSource, name: str | None, kept: NDArray[np.bool_] | None, progress: Progress
) -> Classes | None:
    if name is None:
        return None
    classes = Classes()
    for rows, texts in _texts(source, name, "classes", progress):
        classes.add(texts if kept is None else compress(texts, kept[rows]))
    return classes


def _write(
    options: argparse.Namespace,
    labels: IntArray,
    source: ChunkSource,
    kept: NDArray[np.bool_] | None,
    progress: Progress,
) -> None:
    """The file that ``write_labels`` writes for rows in memory."""
    done = 0
    with LabelWriter(options.output, id_name=options.id[0] if options.id else "row") as writer:
        for rows, texts in _ids(source, options.id[0] if options.id and writer.with_ids else None, progress):
            inside = np.ones(rows.stop - rows.start, dtype=bool) if kept is None else kept[rows]
            full = np.zeros(len(inside), dtype=np.int64)
            full[inside] = labels[done : done + int(inside.sum())]
            done += int(inside.sum())
            writer.write(full, texts, None if kept is None else inside)


def _ids(source: ChunkSource, name: str | None, progress: Progress) -> Iterator[tuple[slice, list[str] | None]]:
    if name is not None:
        yield from _texts(source, name, "ids", progress)
        return
    n = source.n_table_rows
    for start in range(0, n, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, n)), None


def _id_column(table: ChunkSource, options: argparse.Namespace) -> str | None:
    """The first column that --id names: the rows of a report have one name each."""
    if not options.id:
        return None
    if not isinstance(table, PreparedChunks):
        return str(options.id[0])
    return names_of(table.name, "--id", options.id, list(table.table.kinds))[0]


def _row_names(
    source: ChunkSource, name: str | None, kept: NDArray[np.bool_] | None, progress: Progress
) -> Callable[[IntArray], list[str]] | None:
    """What gives the names of some rows, ascending, in one pass: their ids, or their numbers in the file.

    None if numbers in the file are those of the rows that were fitted.
    """
    if name is None and (kept is None or kept.all()):
        return None
    places = None if kept is None else np.flatnonzero(kept)

    def names(numbers: IntArray) -> list[str]:
        wanted = numbers if places is None else places[numbers]
        if name is None:
            return [f"row {row}" for row in wanted]
        found: list[str] = []
        for rows, texts in _texts(source, name, "ids", progress):
            first, last = np.searchsorted(wanted, (rows.start, rows.stop))
            found += [texts[row - rows.start] for row in wanted[first:last]]
        return found

    return names


# The estimate


def _seconds_to_read_a_row(source: ChunkSource) -> float:
    """The best of the first chunks: others may be busy on the machine, and the first chunk also opens the file."""
    chunks = source.chunks(check_finite=False)
    best, start = np.inf, time.perf_counter()
    for chunk in islice(chunks, ESTIMATE_CHUNKS):
        best, start = min(best, (time.perf_counter() - start) / len(chunk)), time.perf_counter()
    return float(best)


def _print_estimate(
    model: BicliqueSpectralClustering, table: ChunkSource, source: ChunkSource, options: argparse.Namespace
) -> int:
    """From the speed of some rows, scaled by what is known of these, and the time it takes to read a chunk."""
    _check_rows(table, table.n_rows, options)
    reading = _seconds_to_read_a_row(table) * table.n_table_rows
    sample = source.sample(ESTIMATE_ROWS, np.random.RandomState(options.seed))
    scaled: ChunkSource = source
    if not isinstance(source, PreparedChunks):
        scaled, _ = _scaled(ArrayChunks(sample, table.name), options, Progress())
    if isinstance(scaled, ScaledChunks):
        source = ScaledChunks(source, scaled.offset, scaled.factor)
    with caught_messages():
        plan = model.plan(source)
    plan = replace(plan, seconds=plan.cost.seconds + PASSES * reading)
    facts = {"table": table.name, "rows": table.n_rows, "columns": table.n_used, "streamed": True}
    return print_estimate(plan, facts, "read in chunks", options)


# Rows of a table in chunks, as the fit takes them


class ChunkRows(RowSource):
    """Rows of a chunk source; the first pass looks for values that cannot be used."""

    def __init__(self, source: ChunkSource, weights: FloatArray | None, check: Check) -> None:
        self.source, self.weights, self.check = source, weights, check
        self.name, self.n_columns, self.names = source.name, source.n_columns, source.columns
        self._checked = False

    @property
    def n_rows(self) -> int | None:
        return self.source.n_rows

    def draw(self, size: int, random: np.random.RandomState) -> tuple[Rows, FloatArray]:
        if self.weights is None:
            rows, numbers = self.source.draw(size, random)
        else:
            numbers = drawn(self.weights, size, random)
            rows = self.source.take(numbers)
            if self.n_rows is not None and len(self.weights) != self.n_rows:
                raise DataError(
                    f"sample_weight has {len(self.weights)} numbers for {self.n_rows} rows: give one for each row."
                )
        self.check(rows, numbers)
        return rows, np.ones(len(rows)) if self.weights is None else self.weights[numbers]

    def _blocks(self) -> Iterator[Block]:
        done = 0
        for rows in self.source.chunks(CHUNK_ROWS, check_finite=not self._checked):
            if not self._checked:
                check_values(rows, self.source.columns, first_row=done)
                self.check(rows, range(done, done + len(rows)))
            weights = np.ones(len(rows)) if self.weights is None else self.weights[done : done + len(rows)]
            yield Block(rows, weights, done)
            done += len(rows)
        self._checked = True


def open_chunk_rows(X: Any, sample_weight: Any, memory_limit: int | str, check: Check) -> ChunkRows:
    """Rows of a chunk source."""
    limit = parse_memory_limit(memory_limit)
    source = open_chunks(X, memory_limit=limit)
    source.require_labels(limit)
    weights = None
    if sample_weight is not None:
        n = source.n_rows
        weights = check_weights(sample_weight, np.size(sample_weight) if n is None else n)
    return ChunkRows(source, weights, check)


OPENERS["chunks"] = Opener(lambda X: isinstance(X, ChunkSource), open_chunk_rows)
