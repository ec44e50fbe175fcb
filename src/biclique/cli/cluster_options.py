"""Options of ``biclique cluster``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from biclique.cli.label_output import is_folder
from biclique.cli.options import (
    MODEL,
    WORK,
    Assigning,
    check_apart,
    model_option,
    number_or_word,
    option,
    whole_or,
    work_option,
)
from biclique.cli.table_options import ColumnOptions
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.datasets.paper import SHIPPED
from biclique.exceptions import DataError, ParameterError
from biclique.features.neighborhoods import LANDMARKS, METRICS, NEIGHBORS
from biclique.fit.choose import GRAPH_NEIGHBORS, RANK
from biclique.fit.settings import GRAM_NAMES, MODELLINGS, NEIGHBORHOODS, PRECISIONS
from biclique.kernels.gower import Gower
from biclique.kernels.named import KERNEL_NAMES, KERNELS
from biclique.runtime.arguments import Names
from biclique.selection.count_search import MOST_CLUSTERS
from biclique.tables.atomic_files import check_target
from biclique.tables.reading import FORMATS

SWITCH: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(Assigning, ColumnOptions):
    table: str = option(
        metavar="TABLE",
        nargs="?",  # --drop a b TABLE takes it at first
        help=f"file or folder ({', '.join(FORMATS)}), - for standard input, or a data set of scikit-learn "
        f"({', '.join(SHIPPED)})",
    )
    n_clusters: int | str = option(
        "-k",
        "--clusters",
        parameter=True,
        type=whole_or("select"),
        required=True,
        metavar="K",
        help="number of clusters, or select",
    )
    k_max: int | None = option(
        "--k-max", type=int, metavar="K", help=f"most clusters that select tries (default: {MOST_CLUSTERS})"
    )
    report: str | None = option(
        "--report", metavar="FILE", help="write a page to look at and to send, such as report.html"
    )
    save: str | None = option(
        "--save", metavar="FILE", help="write the model to FILE, for biclique predict (model.skops)"
    )
    order: float | str | None = model_option(
        "--order", type=number_or_word, help="order of the hypergraph: 2 to inf, or auto"
    )
    modelling: str | None = model_option(
        "--modelling", choices=MODELLINGS, help="symmetric: whole orders, odd ones too"
    )
    gamma: float | str | None = model_option(
        "--gamma", type=number_or_word, help="bandwidth of a kernel: a number, auto, median, scale"
    )
    affinity: str = option(
        "--affinity",
        group=MODEL,
        default=NEIGHBORHOODS,
        choices=Names(lambda: (NEIGHBORHOODS, *KERNEL_NAMES, "nearest_neighbors")),
        help="the hypergraph of neighbourhoods (default), a kernel, or a graph of nearest neighbours",
    )
    metric: str = option(
        "--metric",
        group=MODEL,
        default=METRICS[0],
        choices=METRICS,
        help="how neighborhoods measures distances: cosine for text, gower for tables with categories",
    )
    degree: float | None = model_option("--degree", type=float, help="of the polynomial kernel")
    coef0: float | None = model_option("--coef0", type=float, help="of the polynomial and sigmoid kernels")
    n_neighbors: int | None = model_option(
        "--n-neighbors",
        type=int,
        metavar="N",
        help=f"of neighborhoods (default: {NEIGHBORS}) and nearest_neighbors (default: {GRAPH_NEIGHBORS})",
    )
    row_normalize: str = option(
        "--row-normalize",
        group=MODEL,
        default="auto",
        choices=list(SWITCH),
        help="embedding rows of length 1 (default: auto, that is no for kernels and yes for the others)",
    )
    gram: str | None = work_option("--gram", choices=GRAM_NAMES, help="how the kernel matrix is stored")
    rank: int | str | None = work_option(
        "--rank",
        type=whole_or("auto", "all"),
        metavar="N",
        help=f"landmarks of neighborhoods (auto: {LANDMARKS}; all: every distinct row) and nystroem, columns of "
        f"features (auto: {RANK})",
    )
    precision: str | None = work_option("--precision", choices=PRECISIONS, help="of tiles")
    device: str | None = work_option(
        "--device", metavar="NAME", help="such as cuda: exact, on a GPU (needs biclique[gpu])"
    )
    dask: str | None = option(
        "--dask",
        group=WORK,
        metavar="WHERE",
        help="run on a Dask cluster: the address of its scheduler, or local: processes on this machine. TABLE may be a "
        "pattern such as 'rows/*.parquet', one chunk a file, and -o names a folder (needs biclique[dask])",
    )

    @property
    def compares_levels(self) -> bool:
        """Whether the model compares categories and leaves gaps out itself."""
        if self.affinity == NEIGHBORHOODS:
            return self.metric == "gower"
        return self.affinity in KERNELS and KERNELS[self.affinity].takes_gaps

    def check(self) -> None:
        if self.dask is None or self.output is None or not is_folder(self.output):
            super().check()
        if self.metric != METRICS[0] and self.affinity != NEIGHBORHOODS:
            raise ParameterError(
                f"--metric {self.metric} is for --affinity neighborhoods, not {self.affinity}: leave one out."
            )
        if self.missing == "keep" and not self.compares_levels:
            raise ParameterError(
                "--missing keep is for --metric gower and --affinity gower, and the others need every value: use "
                "--missing drop, mean, median or indicator."
            )
        if self.save is not None:
            check_target(self.save)
            check_apart("model", self.save, self.table, self.output)
        if self.report is not None:
            check_page(self.report, self.table, self.output, self.save)

    def model(self, categories: list[int]) -> BicliqueSpectralClustering:
        """The estimator; ``categories`` are the columns of codes."""
        gower = Gower(categories or None)
        parameters = self.parameters() | {"row_normalize": SWITCH[self.row_normalize], "verbose": self.verbose}
        if self.affinity == NEIGHBORHOODS and self.metric != METRICS[0]:
            parameters["kernel_params"] = {"metric": gower if self.metric == "gower" else self.metric}
        return BicliqueSpectralClustering(affinity=gower if self.affinity == "gower" else self.affinity, **parameters)


def check_page(path: str, *others: str | None) -> None:
    """Refuse a report that could not be written."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise DataError(f"cannot write {path}: the name of a report must end in .html.")
    check_target(path)
    check_apart("report", path, *others)
