"""``biclique hypergraph``: given hyperedges."""

import argparse
import re
import shlex
import time
from collections.abc import Iterator
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
    Facts,
    Json,
    Options,
    Warned,
    model_option,
    option,
    output_file,
    switch,
)
from biclique.cli.output import output_lines, size_lines
from biclique.cli.table_options import HEADER
from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
from biclique.exceptions import DataError
from biclique.hypergraph.expansions import EXPANSIONS, SPLITTINGS
from biclique.hypergraph.files.by_ending import read_hypergraph, write_hypergraph
from biclique.hypergraph.files.edge_list import quoted
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.progress import format_seconds
from biclique.tables.atomic_files import check_target
from biclique.tables.frames import pandas
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

    file: str = option("HIF .json or .hif, hMetis .hgr, edge list .csv or .tsv; each also with .gz", reads=True)
    edge_column: str | None = edge_option(
        "the edge that a line belongs to, such as paper", "--edge-column", metavar="NAME"
    )
    vertex_column: str | None = edge_option(
        "the vertices, which are clustered, such as author", "--vertex-column", metavar="NAME"
    )
    weight_column: str | None = edge_option(
        "weights of the edges, the same in all lines of an edge, such as citations",
        "--weight-column",
        metavar="NAME",
    )
    separator: str | None = edge_option(
        "what stands between the names of a list in the vertices' column, such as ';' (or '\\t', a tab); in a file "
        "without named columns, between the vertices of a line",
        "--separator",
        type=lambda text: text.replace("\\t", "\t"),
        metavar="TEXT",
    )
    header: str = edge_option(
        "whether the first line has the names of columns (default: auto, yes if columns are named; otherwise a line "
        "that looks like a header is refused)",
        "--header",
        default="auto",
        choices=HEADER,
        also=("the first line is data, and the columns are called 0, 1, 2, and so on", "--no-header", "no"),
    )

    def in_words(self, text: str) -> str:
        """Without Python's words for the options, which stand in brackets beside them. To paste: this command."""
        text = re.sub(r" \((?:in Python )?[a-z_]+=[a-z_=, ]*\)", "", text)
        text = super().in_words(re.sub(r"[a-z_]+ \((--[a-z-]+)\)", r"\1", text))
        return text.replace(f"biclique hypergraph info {quoted(self.file)}", shlex.join(["biclique", *self.arguments]))

    def hypergraph(self) -> Hypergraph:
        return read_hypergraph(self.file, **self.parameters(read_hypergraph) | {"header": HEADER[self.header]})


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(Assigning, EdgeList):
    """Cluster the vertices of a hypergraph. A vertex that shares no edge with another gets label -1."""

    n_clusters: int = option("number of clusters, such as 3", "-k", "--clusters", required=True, metavar="K")
    output: str | None = option(
        f"write one label per vertex to FILE ({', '.join(ENDINGS)}), such as labels.csv; - is standard output",
        "-o",
        "--output",
        type=output_file,
        writes=check_output,
    )
    expansion: str | None = model_option(
        "how an edge becomes pairs, or what cutting it costs", "--expansion", choices=[*EXPANSIONS, *SPLITTINGS]
    )
    order: float | str | None = model_option("2 to inf, such as 4; above 2, degrees are shrunk", "--order")
    row_normalize: bool | None = model_option(
        "leave the rows of the embedding as they are", "--no-row-normalize", action="store_false"
    )
    largest_component: bool = switch("cluster the largest connected component only", "--largest-component", group=MODEL)


@dataclass(frozen=True, kw_only=True)
class ConvertOptions(EdgeList):
    """Write a hypergraph in another format."""

    target: str = option(
        "file to write; its ending is its format, such as papers.json", metavar="TARGET", writes=check_target
    )


@dataclass(frozen=True, kw_only=True)
class InfoOptions(Json, EdgeList):
    """Sizes, degrees and connected components of a hypergraph."""


def _vertices(hypergraph: Hypergraph) -> Iterator[Any]:
    """The names of the vertices as one frame; .npy has labels alone, does not ask for it, and needs no pandas."""
    yield pandas().DataFrame({"vertex": [str(name) for name in hypergraph.vertex_names]})


def cluster(options: ClusterOptions, warned: Warned) -> Facts:
    hypergraph = options.hypergraph()
    part, kept = hypergraph, np.arange(hypergraph.n_vertices)
    if options.largest_component:
        kept = np.flatnonzero(hypergraph.components() == 0)
        part = hypergraph.restricted(kept)
    start = time.perf_counter()
    model = HypergraphSpectralClustering(**options.parameters(HypergraphSpectralClustering)).fit(part)
    seconds = time.perf_counter() - start
    labels = np.full(hypergraph.n_vertices, -1)
    labels[kept] = model.labels_
    if options.output is not None:
        write_labels(options.output, labels, _vertices(hypergraph))
    return {
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
        "warnings": warned(),
    }


def cluster_lines(facts: Facts) -> list[str]:
    """The clustering as text."""
    charged = f"pairs charge at most {facts['distortion']:.3g} times what cutting an edge costs"
    return [
        f"{facts['file']}: {_counted(facts)}",
        f"expansion {facts['expansion']}, order {float(facts['order']):g}, normalised cut "
        f"{facts['normalized_cut']:.4f}, {facts['passes']} passes, {format_seconds(facts['seconds'])}",
        *[charged] * (facts["distortion"] > 1),
        *size_lines(facts["clusters"], facts["without_cluster"], "vertices"),
        *output_lines(facts["output"]),
    ]


def convert(options: ConvertOptions, warned: Warned) -> Facts:  # noqa: ARG001
    hypergraph = options.hypergraph()
    write_hypergraph(hypergraph, options.target)
    return {"target": options.target, **_sizes(hypergraph)}


def convert_lines(facts: Facts) -> list[str]:
    """What was written, and what was not."""
    names = "names, " if ".hgr" in Path(facts["target"]).suffixes else ""
    return [
        f"{facts['target']}: {_counted(facts)}",
        f"not kept, if there were any: {names}attributes and vertex weights of the source",
    ]


def info(options: InfoOptions, warned: Warned) -> Facts:  # noqa: ARG001
    hypergraph = options.hypergraph()
    if hypergraph.n_vertices == 0:
        raise DataError(f"{options.file}: it has no vertices.")
    degrees = hypergraph.degrees
    if not np.isfinite(degrees).all():
        raise DataError(f"{options.file}: the sums of its edge weights overflow; divide the weights by the largest.")
    parts = np.bincount(hypergraph.components())
    return {
        "file": options.file,
        **_sizes(hypergraph),
        "repeated_vertices": hypergraph.has_repeats,
        "uniform_order": hypergraph.uniform_order,
        "degrees": {"min": degrees.min(), "median": float(np.median(degrees)), "max": degrees.max()},
        "parts": parts[parts > 1].tolist(),
        "vertices_without_neighbours": int((parts == 1).sum()),
    }


def info_lines(facts: Facts) -> list[str]:
    """The facts as text."""
    degrees, parts = facts["degrees"], facts["parts"]
    shown = ", ".join(map(str, parts[:5])) + (", …" if len(parts) > 5 else "")
    shown = f" ({shown} vertices)" if shown else ""
    return [
        f"{facts['file']}: {_counted(facts)}" + ", with repeated vertices" * facts["repeated_vertices"],
        f"degrees {degrees['min']:g} to {degrees['max']:g}, median {degrees['median']:g}",
        f"connected components: {len(parts)}{shown}, {facts['vertices_without_neighbours']} alone",
    ]


def _sizes(hypergraph: Hypergraph) -> dict[str, Any]:
    sizes = hypergraph.edge_sizes
    return {
        "vertices": hypergraph.n_vertices,
        "edges": hypergraph.n_edges,
        "incidences": hypergraph.n_incidences,
        "smallest_edge": float(sizes.min()) if len(sizes) else None,
        "largest_edge": float(sizes.max()) if len(sizes) else None,
    }


def _counted(facts: Facts) -> str:
    low, high = facts["smallest_edge"], facts["largest_edge"]
    size = "" if low is None else f" of size {low:g}" if low == high else f" of size {low:g} to {high:g}"
    return f"{facts['vertices']} vertices, {facts['edges']} edges{size}, {facts['incidences']} incidences"


ACTIONS = {
    "cluster": Command(ClusterOptions, cluster, cluster_lines, EXAMPLES, HypergraphSpectralClustering),
    "convert": Command(ConvertOptions, convert, convert_lines, EXAMPLES),
    "info": Command(InfoOptions, info, info_lines, EXAMPLES),
}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Give a parser the three actions."""
    parser.epilog = EXAMPLES
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, command in ACTIONS.items():
        command.add_to(actions.add_parser(name, help=command.options.__doc__, formatter_class=RAW))
