"""``biclique cluster``: open the table, prepare, fit, describe, write."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from biclique._typing import FloatArray
from biclique.cli.label_output import check_folder, found_labels, rows_to_label, write_parts
from biclique.cli.opened_tables import OpenedTable, connected, in_rows_of_table, is_shipped, open_table, table_file
from biclique.cli.options import (
    Assigning,
    Command,
    Facts,
    Warned,
    model_option,
    option,
    work_option,
)
from biclique.cli.report_command import write_report
from biclique.cli.results import facts_of, result_lines, without_repeated
from biclique.cli.table_options import ColumnOptions, check_page, command, possible_names
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.datasets.paper import SHIPPED
from biclique.exceptions import BicliqueError, DataError, ParameterError, TableError, TableWarning, printable, warn_user
from biclique.features.neighborhoods import LANDMARKS, METRICS, NEIGHBORS
from biclique.fit.choose import GRAPH_NEIGHBORS, RANK
from biclique.fit.settings import COUNTING, GRAM_NAMES, MODELLINGS, NEIGHBORHOODS, PRECISIONS, check_parameters
from biclique.kernels.gower import Gower
from biclique.kernels.named import KERNEL_NAMES, KERNELS
from biclique.models.saving import save
from biclique.runtime.arguments import Names
from biclique.selection.count_search import MOST_CLUSTERS, select_n_clusters
from biclique.tables.atomic_files import check_target
from biclique.tables.diagnosis import Advice, ColumnsError, way_out
from biclique.tables.frames import kind_of, texts_of
from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import FORMATS
from biclique.tables.text_form import TextForm
from biclique.tables.used_columns import shown_names, warn_about_clusters, weights_of
from biclique.tables.writing import ENDINGS, ending_of, write_labels

EXAMPLES = """\
examples:
  biclique cluster iris -k 3
  biclique cluster customers.csv -k 5 --id name --drop notes -o labels.csv
  biclique cluster customers.csv -k select --save customers.skops
  biclique cluster rows.npy -k 10 --report rows.html
"""
ADD = "add rows, or label it by a saved model (biclique predict)"
FILL = "fill the gaps in with --missing mean, or leave out the columns that have them with --drop"
"""Ways out if too few rows are left."""
CLASSES = ("class", "classes", "label", "labels", "target", "truth", "ground_truth", "species", "y")
"""Names of categories that may be the answer rather than a part of the question."""
SWITCH: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(Assigning, ColumnOptions):
    """Cluster the rows of a table. Columns are scaled to unit variance unless --scale says otherwise."""

    table: str = option(
        f"file or folder ({', '.join(FORMATS)}), - for standard input, or a data set of scikit-learn "
        f"({', '.join(SHIPPED)})",
        metavar="TABLE",
        reads=True,
    )
    n_clusters: int | str = option(
        "number of clusters, or select",
        "-k",
        "--clusters",
        required=True,
        metavar="K",
    )
    k_max: int | None = option(f"most clusters that select tries (default: {MOST_CLUSTERS})", "--k-max", metavar="K")
    report: str | None = option(
        "write a page to look at and to send, such as report.html", "--report", writes=check_page
    )
    save: str | None = option(
        "write the model to FILE, for biclique predict (model.skops)", "--save", writes=check_target
    )
    order: float | str | None = model_option(
        "order of the hypergraph of a kernel: 2 to inf, or auto (2 for the others)", "--order"
    )
    modelling: str | None = model_option("symmetric: whole orders, odd ones too", "--modelling", choices=MODELLINGS)
    gamma: float | str | None = model_option("bandwidth of a kernel: a number, auto, median, scale", "--gamma")
    affinity: str = model_option(
        "the hypergraph of neighbourhoods (default), a kernel, or a graph of nearest neighbours",
        "--affinity",
        default=signature(BicliqueSpectralClustering).parameters["affinity"].default,
        choices=Names(lambda: (NEIGHBORHOODS, *KERNEL_NAMES, "nearest_neighbors")),
    )
    metric: str = model_option(
        "how neighborhoods measures distances: cosine for text, gower for tables with categories",
        "--metric",
        default=METRICS[0],
        choices=METRICS,
    )
    degree: float | None = model_option("of the polynomial kernel", "--degree")
    coef0: float | None = model_option("of the polynomial and sigmoid kernels", "--coef0")
    n_neighbors: int | None = model_option(
        f"of neighborhoods (default: {NEIGHBORS}) and nearest_neighbors (default: {GRAPH_NEIGHBORS})", "--n-neighbors"
    )
    row_normalize: str = model_option(
        "embedding rows of length 1 (default: auto, that is no for kernels and yes for the others)",
        "--row-normalize",
        default="auto",
        choices=list(SWITCH),
    )
    gram: str | None = work_option("how the kernel matrix is stored", "--gram", choices=GRAM_NAMES)
    rank: int | str | None = work_option(
        f"landmarks of neighborhoods (auto: {LANDMARKS}; all: every distinct row) and nystroem, columns of features "
        f"(auto: {RANK})",
        "--rank",
    )
    precision: str | None = work_option("of tiles", "--precision", choices=PRECISIONS)
    device: str | None = work_option("such as cuda: exact, on a GPU (needs biclique[gpu])", "--device", metavar="NAME")
    dask: str | None = work_option(
        "run on a Dask cluster: the address of its scheduler, or local: processes on this machine. TABLE may be a "
        "pattern such as 'rows/*.parquet', one chunk a file, and -o names a folder (needs biclique[dask])",
        "--dask",
        metavar="WHERE",
    )

    @property
    def compares_levels(self) -> bool:
        """Whether the model compares categories and leaves gaps out itself."""
        if self.affinity == NEIGHBORHOODS:
            return self.metric == "gower"
        return self.affinity in KERNELS and KERNELS[self.affinity].takes_gaps

    @property
    def sparing(self) -> bool:
        """Whether a large table is read in parts even if it fits: that gives the default the same clusters."""
        default = self.affinity == NEIGHBORHOODS and self.metric == METRICS[0] and self.device is None
        return default and self.n_clusters != "select" and self.assign_labels != "kernel_kmeans" and not self.report

    @property
    def folder(self) -> str | None:
        """Where parts go: an output of ``--dask`` whose name has no ending of a file of labels."""
        return self.output if self.dask and self.output and ending_of(self.output) not in ENDINGS else None

    def check(self) -> None:
        super().check()
        if self.folder:
            check_folder(self.folder)
        if self.metric != METRICS[0] and self.affinity != NEIGHBORHOODS:
            raise ParameterError(
                f"--metric {self.metric} is for --affinity neighborhoods, not {self.affinity}: leave one out."
            )
        if self.missing == "keep" and not self.compares_levels:
            raise ParameterError(
                "--missing keep is for --metric gower and --affinity gower, and the others need every value: use "
                "--missing drop, mean, median or indicator."
            )
        check_parameters(self.model([]).get_params(deep=False), COUNTING)

    def model(self, categories: list[int]) -> BicliqueSpectralClustering:
        """The estimator; ``categories`` are the columns of codes."""
        gower = Gower(categories or None)
        parameters = self.parameters(BicliqueSpectralClustering) | {"row_normalize": SWITCH[self.row_normalize]}
        if self.affinity == "gower":
            parameters["affinity"] = gower
        elif self.affinity == NEIGHBORHOODS and self.metric != METRICS[0]:
            parameters["kernel_params"] = {"metric": gower if self.metric == "gower" else self.metric}
        return BicliqueSpectralClustering(**parameters)


def run(options: ClusterOptions, warned: Warned) -> Facts:
    with table_file(options.table) as path:
        try:
            with connected(options.dask, options.n_jobs):
                return _cluster(options, path, warned)
        except ColumnsError as error:
            raise _explained(error, options, path) from error


def _cluster(options: ClusterOptions, path: str, warned: Warned) -> Facts:
    table = _open(options, path, options.form(), sparing=options.sparing)
    ids = options.ids(table.names)
    try:
        classes, weights = _prepare(options, path, table)
    except BicliqueError:
        if not (options.sparing and table.streamed):
            raise
        table = _open(options, path, options.form())  # whole, if it fits: then it can be done, or the error says more
        classes, weights = _prepare(options, path, table)
    preparer = table.preparer
    model = options.model(preparer.categorical_places_)
    start = time.perf_counter()
    with in_rows_of_table(table.kept, preparer.get_feature_names_out()):
        _fit(options, model, table, weights)
    labels = np.asarray(model.labels_)
    seconds = time.perf_counter() - start
    if options.report or options.json or not options.quiet:
        frame, rows, numbers = table.shown(options.random_state)
        constant = preparer.get_feature_names_out()[np.ptp(rows, axis=0) == 0]
        if len(constant):
            warn_user(f"constant columns tell nothing apart: {shown_names(constant)}.", TableWarning)
        warn_about_clusters(frame, preparer.category_columns_, labels[numbers])
    if options.output:
        found, probabilities = found_labels(model, table.X, table.kept, labels, append=options.append)
        if options.folder:
            write_parts(options.folder, found, table, ids)
        else:
            beside = rows_to_label(table, ids, len(found), append=options.append)
            write_labels(options.output, found, beside, options.form(), probabilities)
    saved = None
    if options.save is not None:
        notes = {"id": ids, "text": options.written}  # biclique predict needs them too
        save(Pipeline([("prepare", preparer), ("cluster", model)]), options.save, notes=notes)
        saved = {"file": options.save, "bytes": Path(options.save).stat().st_size}
    if options.report:
        said = warned()
        if len(rows) < len(labels):
            said.append(f"this page is made of {len(rows)} of {len(labels)} rows, drawn at random.")
        places = np.flatnonzero(table.kept)[numbers]
        write_report(options, options.report, model, preparer, rows, frame, ids, places, said)
    if options.quiet and not options.json:
        return {}
    return {
        "table": printable(options.shown_table),
        **facts_of(model, table, labels, classes, frame, rows, labels[numbers]),
        "seconds": seconds,
        "output": options.output,
        "report": options.report,
        "saved": saved,
        "warnings": warned() if options.json else without_repeated(model, warned()),
    }


# Open, and prepare


def _open(options: ClusterOptions, path: str, form: TextForm, *, sparing: bool = False) -> OpenedTable:
    texts = possible_names([*options.id, *([] if options.label is None else [options.label])])
    lazily = options.dask is not None
    return open_table(path, form, texts=texts, append=options.append, lazily=lazily, sparing=sparing)


def _preparer(options: ClusterOptions, names: Sequence[str], label: str | None) -> TablePreparer:
    leave_out = [*options.names("id", names), *options.names("weight", names), *([] if label is None else [label])]
    return options.preparer(names, leave_out=leave_out, codes=options.compares_levels)


def _prepare(options: ClusterOptions, path: str, table: OpenedTable) -> tuple[list[str] | None, FloatArray | None]:
    """Rows as numbers; the known classes and the weights of those that are kept, if there are such columns."""
    name = printable(options.shown_table)
    label = next(iter(options.names("label", table.names)), None)
    if is_shipped(path) and "target" in table.names:
        label = "target"
    table.prepare(_preparer(options, table.names, label))
    kept = table.kept
    n_rows = int(kept.sum())
    if n_rows < 2:
        gaps = n_rows < len(kept)
        few = ("no row", "only one row")[n_rows] + " without missing values" * gaps
        raise DataError(f"{name}: {few}; a table needs at least 2 rows to be clustered: {FILL if gaps else ADD}.")
    classes = None if label is None else texts_of(table.column(label)[kept])
    weights = None if options.weight is None else weights_of(table.column(options.weight), kept, name)
    return classes, weights


def _explained(error: ColumnsError, options: ClusterOptions, path: str) -> TableError:
    """What each column looks like, and the command that deals with all of them, as notes of an error."""
    text = options.in_words(error.description.replace(printable(path), printable(options.shown_table)))
    advice, more = _with_one_decimal(error.advice, options, path)
    first, *others = text.splitlines()
    words = options.arguments
    if advice.mostly_categories and (options.affinity, options.metric) == (NEIGHBORHOODS, METRICS[0]):
        words, advice = (*words, "--metric", "gower"), replace(advice, missing=None)  # which compares rows with gaps
    way = way_out(command(words, advice), advice.drop)
    explained = TableError(first)
    known = [name for name in advice.categorical if name.lower() in CLASSES and options.label is None]
    more += [
        f"If {name} holds known classes, write --label {name} and not --categorical: it would decide the clusters."
        for name in known
    ]
    for note in (*others, *more, *([error.hopeless] if error.hopeless else way)):
        explained.add_note(note)
    return explained


def _with_one_decimal(advice: Advice, options: ClusterOptions, path: str) -> tuple[Advice, list[str]]:
    """The advice if some columns have decimal commas and others points; and lines about the latter.

    A file is read with one sign: that of more columns, and the others are left out.
    """
    if not advice.decimal:
        return advice, []
    table = _open(options, path, replace(options.form(), decimal=","))
    try:
        preparer = _preparer(options, table.names, options.label)
    except TableError:  # without commas between fields the names are others
        return advice, []
    dealt_with = {*advice.id, *advice.drop, *advice.categorical, *advice.year_last, *map(str, preparer.drop)}
    used = [str(name) for name in preparer.columns or table.names]
    points = [name for name in used if name not in dealt_with and kind_of(table.column(name)) == "text"]
    words = "numbers with a decimal point: a file is read with one decimal sign"
    more = [f"  {printable(name)}  {words}" for name in points]
    if len(points) > len(advice.decimal):
        return replace(advice, drop=[*advice.drop, *advice.decimal], decimal=[]), more
    return replace(advice, drop=[*advice.drop, *points]), more


# Fit


def _fit(
    options: ClusterOptions, model: BicliqueSpectralClustering, table: OpenedTable, found: FloatArray | None
) -> None:
    weights: dict[str, Any] = {} if found is None else {"sample_weight": found}
    if options.n_clusters == "select" and (options.k_max is not None or options.compares_levels):
        rows = table.X
        if options.compares_levels:  # the search compares rows by Euclidean distances: levels as columns, no gaps
            missing = "drop" if table.preparer.missing == "drop" else "mean"
            other = clone(table.preparer).set_params(encode="one-hot", scale="standard", missing=missing)
            rows = replace(table).prepare(other)
        metric = "cosine" if "cosine" in (options.affinity, options.metric) else "euclidean"
        asked = options.parameters(select_n_clusters) | {"metric": metric}
        selection = select_n_clusters(rows, **asked, **weights)
        model.set_params(n_clusters=selection.n_clusters).fit(table.X, **weights)
        model.k_selection_ = selection
    else:
        model.fit(table.X, **weights)


add_to = Command(ClusterOptions, run, result_lines, EXAMPLES, BicliqueSpectralClustering).add_to
