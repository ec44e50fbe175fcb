"""``biclique hypergraph``: given hyperedges."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from biclique.cli.label_output import cluster_sizes
from biclique.cli.options import (
    EDGE_LIST,
    MODEL,
    RAW,
    Assigning,
    Command,
    Json,
    Options,
    check_apart,
    model_option,
    number_or_word,
    option,
    output_file,
    switch,
)
from biclique.cli.output import line, print_output, print_sizes
from biclique.cli.table_options import HEADER
from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
from biclique.exceptions import DataError
from biclique.hypergraph.expansions import EXPANSIONS, SPLITTINGS
from biclique.hypergraph.files.by_ending import read_hypergraph, write_hypergraph
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.progress import format_seconds
from biclique.tables.atomic_files import check_target
from biclique.tables.writing import ENDINGS, check_output, write_labels

EXAMPLES = """\
examples:
  biclique hypergraph cluster papers.json -k 2 -o labels.csv
  biclique hypergraph info papers.csv --edge-column paper --vertex-column author
  biclique hypergraph convert papers.csv papers.json --vertex-column authors --separator ';'
"""
edge_option = partial(option, group=EDGE_LIST)


@dataclass(frozen=True, kw_only=True)
class EdgeList(Options):
    """A file of hyperedges, and what the columns of an edge list are for."""

    file: str = option(
        metavar="FILE", help="HIF .json or .hif, hMetis .hgr, edge list .csv or .tsv; each also with .gz"
    )
    edge_column: str | None = edge_option(
        "--edge-column", metavar="NAME", help="the edge that a line belongs to, such as paper"
    )
    vertex_column: str | None = edge_option(
        "--vertex-column", metavar="NAME", help="the vertices, which are clustered, such as author"
    )
    weight_column: str | None = edge_option(
        "--weight-column",
        metavar="NAME",
        help="weights of the edges, the same in all lines of an edge, such as citations",
    )
    separator: str | None = edge_option(
        "--separator",
        type=lambda text: text.replace("\\t", "\t"),
        metavar="TEXT",
        help="what stands between the names of a list in the vertices' column, such as ';' (or '\\t', a tab); in a "
        "file without named columns, between the vertices of a line",
    )
    header: str = edge_option(
        "--header",
        default="auto",
        choices=HEADER,
        help="whether the first line has the names of columns (default: auto, yes if columns are named; otherwise a "
        "line that looks like a header is refused)",
        also=("--no-header", "no", "the first line is data, and the columns are called 0, 1, 2, and so on"),
    )

    def hypergraph(self) -> Hypergraph:
        return read_hypergraph(
            self.file,
            edge_column=self.edge_column,
            vertex_column=self.vertex_column,
            weight_column=self.weight_column,
            separator=self.separator,
            header=HEADER[self.header],
        )


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(Assigning, EdgeList):
    n_clusters: int = option(
        "-k", "--clusters", parameter=True, type=int, required=True, metavar="K", help="number of clusters, such as 3"
    )
    output: str | None = option(
        "-o",
        "--output",
        type=output_file,
        metavar="FILE",
        help=f"write one label per vertex to FILE ({', '.join(ENDINGS)}), such as labels.csv",
    )
    expansion: str | None = model_option(
        "--expansion", choices=[*EXPANSIONS, *SPLITTINGS], help="how an edge becomes pairs, or what cutting it costs"
    )
    order: float | str | None = model_option(
        "--order", type=number_or_word, help="2 to inf, such as 4; above 2, degrees are shrunk"
    )
    row_normalize: bool | None = model_option(
        "--no-row-normalize", action="store_false", help="leave the rows of the embedding as they are"
    )
    largest_component: bool = switch(
        "--largest-component", group=MODEL, help="cluster the largest connected component only"
    )

    def check(self) -> None:
        if self.output is not None:
            check_output(self.output, self.file)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(EdgeList):
    target: str = option(metavar="TARGET", help="file to write; its ending is its format, such as papers.json")

    def check(self) -> None:
        check_apart("output", self.target, self.file)
        check_target(self.target)


@dataclass(frozen=True, kw_only=True)
class InfoOptions(Json, EdgeList):
    pass


def cluster(options: ClusterOptions) -> None:
    hypergraph = options.hypergraph()
    part, kept = hypergraph, np.arange(hypergraph.n_vertices)
    if options.largest_component:
        kept = np.flatnonzero(hypergraph.components() == 0)
        part = hypergraph.restricted(kept)
    model = HypergraphSpectralClustering(**options.parameters(), verbose=options.verbose)
    start = time.perf_counter()
    with options.caught_messages() as messages:
        model.fit(part)
    seconds = time.perf_counter() - start
    labels = np.full(hypergraph.n_vertices, -1)
    labels[kept] = model.labels_
    if options.output is not None:
        names = [str(name) for name in hypergraph.vertex_names]
        write_labels(
            options.output, labels, rows=np.arange(len(labels)), n_rows=len(labels), ids=names, id_name="vertex"
        )
    result = {
        "file": options.file,
        **_sizes(hypergraph),
        "expansion": model.expansion,
        "order": "inf" if np.isinf(model.order_) else model.order_,
        "parts": model.part_sizes_.tolist(),
        "passes": model.n_passes_,
        "eigenvalues": model.eigenvalues_.tolist(),
        "normalized_cut": model.cut_,
        "distortion": model.distortion_,
        "seconds": seconds,
        "clusters": cluster_sizes(labels, options.n_clusters, "vertices"),
        "without_cluster": int((labels < 0).sum()),
        "output": options.output,
        "warnings": messages,
    }
    options.show(result, _print)


def _print(result: dict[str, Any]) -> None:
    line(f"{result['file']}: {_counted(result)}")
    line(
        f"expansion {result['expansion']}, order {float(result['order']):g}, normalised cut "
        f"{result['normalized_cut']:.4f}, {result['passes']} passes, {format_seconds(result['seconds'])}"
    )
    if result["distortion"] > 1:
        line(f"pairs charge at most {result['distortion']:.3g} times what cutting an edge costs")
    print_sizes(result["clusters"], result["without_cluster"], "vertices")
    print_output(result["output"])


def convert(options: ConvertOptions) -> None:
    hypergraph = options.hypergraph()
    write_hypergraph(hypergraph, options.target)
    line(f"{options.target}: {_counted(_sizes(hypergraph))}")
    names = "names, " if ".hgr" in Path(options.target).suffixes else ""
    line(f"not kept, if there were any: {names}attributes and vertex weights of the source")


def info(options: InfoOptions) -> None:
    hypergraph = options.hypergraph()
    if hypergraph.n_vertices == 0:
        raise DataError(f"{options.file}: it has no vertices.")
    degrees = hypergraph.degrees
    if not np.isfinite(degrees).all():
        raise DataError(f"{options.file}: the sums of its edge weights overflow; divide the weights by the largest.")
    parts = np.bincount(hypergraph.components())
    facts = {
        "file": options.file,
        **_sizes(hypergraph),
        "repeated_vertices": hypergraph.has_repeats,
        "uniform_order": hypergraph.uniform_order,
        "degrees": {"min": degrees.min(), "median": float(np.median(degrees)), "max": degrees.max()},
        "parts": parts[parts > 1].tolist(),
        "vertices_without_neighbours": int((parts == 1).sum()),
    }
    options.show(facts, _print_info)


def _print_info(facts: dict[str, Any]) -> None:
    line(f"{facts['file']}: {_counted(facts)}" + (", with repeated vertices" if facts["repeated_vertices"] else ""))
    degrees, parts = facts["degrees"], facts["parts"]
    line(f"degrees {degrees['min']:g} to {degrees['max']:g}, median {degrees['median']:g}")
    shown = ", ".join(map(str, parts[:5])) + (", …" if len(parts) > 5 else "")
    shown = f" ({shown} vertices)" if shown else ""
    line(f"connected parts: {len(parts)}{shown}, {facts['vertices_without_neighbours']} alone")


def _sizes(hypergraph: Hypergraph) -> dict[str, Any]:
    sizes = hypergraph.edge_sizes
    return {
        "vertices": hypergraph.n_vertices,
        "edges": hypergraph.n_edges,
        "incidences": hypergraph.n_incidences,
        "smallest_edge": float(sizes.min()) if len(sizes) else None,
        "largest_edge": float(sizes.max()) if len(sizes) else None,
    }


def _counted(result: dict[str, Any]) -> str:
    low, high = result["smallest_edge"], result["largest_edge"]
    size = "" if low is None else f" of size {low:g}" if low == high else f" of size {low:g} to {high:g}"
    return f"{result['vertices']} vertices, {result['edges']} edges{size}, {result['incidences']} incidences"


ACTIONS: dict[str, Command[Any]] = {
    "cluster": Command(
        cluster,
        ClusterOptions,
        "Cluster the vertices of a hypergraph. A vertex that shares no edge with another gets label -1.",
        EXAMPLES,
        HypergraphSpectralClustering,
    ),
    "convert": Command(convert, ConvertOptions, "Write a hypergraph in another format.", EXAMPLES),
    "info": Command(info, InfoOptions, "Sizes, degrees and connected parts of a hypergraph.", EXAMPLES),
}


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, command in ACTIONS.items():
        command.add_to(actions.add_parser(name, help=command.description, formatter_class=RAW))
