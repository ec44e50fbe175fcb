"""``biclique hypergraph``: given hyperedges."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from biclique.cli.common import (
    add_assignment_options,
    add_work_options,
    caught_messages,
    checked_option,
    number_or_word,
)
from biclique.cli.text import EXIT_CODES, EXIT_OK, block, line, print_warnings
from biclique.cluster import HypergraphSpectralClustering
from biclique.exceptions import DataError, ParameterError
from biclique.hypergraph import EXPANSIONS, SPLITTINGS, Hypergraph, read_hypergraph, write_hypergraph
from biclique.io import check_output, check_target, listed, write_labels, writers
from biclique.progress import PLAIN_SECONDS, format_seconds

FORMAT_HELP = "HIF .json or .hif, hMetis .hgr, edge list .csv or .tsv; each also with .gz"
COLUMNS_HELP = """\
For .csv and .tsv files whose columns are not called edge and vertex.

One line for each author of a paper, with the header paper,author,year:
  --edge-column paper --vertex-column author
One line for each paper, with the header title,authors and lists like Ann;Bob;Cy:
  --vertex-column authors --separator ';'
No header, the edge in the first column and the vertex in the second:
  --no-header --edge-column 0 --vertex-column 1
"""
EXAMPLES = """\
examples:
  biclique hypergraph cluster papers.json -k 2 -o labels.csv
  biclique hypergraph info papers.csv --edge-column paper --vertex-column author
  biclique hypergraph convert papers.csv papers.json --vertex-column authors --separator ';'
"""
RAW = argparse.RawDescriptionHelpFormatter


def add_command(commands: Any) -> None:
    """``biclique hypergraph cluster | convert | info``."""
    parser = commands.add_parser(
        "hypergraph", help="cluster, convert or describe a hypergraph", epilog=EXAMPLES, formatter_class=RAW
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_cluster(actions)
    convert = actions.add_parser(
        "convert", help="write a hypergraph in another format", epilog=EXAMPLES, formatter_class=RAW
    )
    convert.set_defaults(run=_convert)
    convert.add_argument("file", metavar="FILE", help=FORMAT_HELP)
    convert.add_argument(
        "target", metavar="TARGET", help="file to write; its ending is its format, such as papers.json"
    )
    _add_column_options(convert)
    info = actions.add_parser("info", help="sizes, degrees and connected parts", epilog=EXAMPLES, formatter_class=RAW)
    info.set_defaults(run=_info)
    info.add_argument("file", metavar="FILE", help=FORMAT_HELP)
    info.add_argument("--json", action="store_true", help="print JSON")
    _add_column_options(info)


def _add_column_options(parser: Any) -> None:
    """What the columns of an edge list are for."""
    group = parser.add_argument_group("columns of an edge list", COLUMNS_HELP)
    group.add_argument("--edge-column", metavar="NAME", help="the edge that a line belongs to, such as paper")
    group.add_argument("--vertex-column", metavar="NAME", help="the vertices, which are clustered, such as author")
    group.add_argument(
        "--weight-column",
        metavar="NAME",
        help="weights of the edges, the same in all lines of an edge, such as citations",
    )
    group.add_argument(
        "--separator",
        type=lambda text: text.replace("\\t", "\t"),
        metavar="TEXT",
        help="what stands between the names of a list in the vertices' column, such as ';' (or '\\t', a tab); in a "
        "file without named columns, between the vertices of a line",
    )
    group.add_argument(
        "--header",
        choices=["auto", "yes", "no"],
        default="auto",
        help="whether the first line holds the names of columns (default: auto, yes if columns are named; otherwise a "
        "line that looks like a header is refused)",
    )
    group.add_argument(
        "--no-header",
        dest="header",
        action="store_const",
        const="no",
        help="like --header no: the first line is data, and the columns are called 0, 1, 2, and so on",
    )


def _read(options: argparse.Namespace) -> Hypergraph:
    return read_hypergraph(
        options.file,
        edge_column=options.edge_column,
        vertex_column=options.vertex_column,
        weight_column=options.weight_column,
        separator=options.separator,
        header={"auto": None, "yes": True, "no": False}[options.header],
    )


def _add_cluster(actions: Any) -> None:
    parser = actions.add_parser(
        "cluster",
        help="cluster the vertices",
        description="Cluster the vertices of a hypergraph. A vertex that shares no edge with another gets label -1.",
        epilog=f"{EXAMPLES}\n{EXIT_CODES}",
        formatter_class=RAW,
    )
    parser.set_defaults(run=_cluster)
    parser.add_argument("file", metavar="FILE", help=FORMAT_HELP)
    parser.add_argument("-k", "--clusters", type=int, required=True, metavar="K", help="number of clusters, such as 3")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"write one label per vertex to FILE ({listed([*writers()], 'or')}), such as labels.csv",
    )
    _add_column_options(parser)
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--expansion",
        choices=[*EXPANSIONS, *SPLITTINGS],
        default="star",
        help="how an edge becomes pairs, or what cutting it costs (default: star)",
    )
    model.add_argument(
        "--order",
        type=number_or_word,
        default=2.0,
        help="2 to inf, such as 4; above 2, degrees are shrunk (default: 2)",
    )
    model.add_argument("--no-row-normalize", action="store_true", help="leave the rows of the embedding as they are")
    model.add_argument("--largest-component", action="store_true", help="cluster the largest connected part only")
    add_assignment_options(model)
    add_work_options(parser.add_argument_group("the work"), max_iter=1000, passes_over="incidences")


def _cluster(options: argparse.Namespace) -> int:
    if options.output is not None:
        with checked_option():
            check_output(options.output, options.file)
    hypergraph = _read(options)
    fitted, kept = hypergraph, np.arange(hypergraph.n_vertices)
    if options.largest_component:
        kept = np.flatnonzero(hypergraph.components() == 0)
        fitted = hypergraph.restricted(kept)
    model = HypergraphSpectralClustering(
        options.clusters,
        expansion=options.expansion,
        order=options.order,
        row_normalize=not options.no_row_normalize,
        assign_labels=options.assign_labels,
        n_init=options.n_init,
        random_state=options.seed,
        eigen_tol=options.tol,
        max_iter=options.max_iter,
        memory_limit=options.memory_limit,
        n_jobs=options.jobs,
        verbose=0 if options.quiet else PLAIN_SECONDS,
    )
    start = time.perf_counter()
    with caught_messages() as messages:
        model.fit(fitted)
    seconds = time.perf_counter() - start
    labels = np.full(hypergraph.n_vertices, -1)
    labels[kept] = model.labels_
    if options.output:
        names = [str(name) for name in hypergraph.vertex_names]
        write_labels(
            options.output, labels, rows=np.arange(len(labels)), n_rows=len(labels), ids=names, id_name="vertex"
        )
    result = _summary(model, hypergraph, labels, options, seconds, messages)
    if options.json:
        block(json.dumps(result, indent=2, allow_nan=False))
    elif not options.quiet:
        print_warnings(messages)
        _print_summary(result)
    return EXIT_OK


def _summary(
    model: HypergraphSpectralClustering,
    hypergraph: Hypergraph,
    labels: np.ndarray,
    options: argparse.Namespace,
    seconds: float,
    messages: list[str],
) -> dict[str, Any]:
    return {
        "file": options.file,
        **_sizes(hypergraph),
        "expansion": options.expansion,
        "order": "inf" if np.isinf(model.order_) else model.order_,
        "parts": model.part_sizes_.tolist(),
        "passes": model.n_passes_,
        "eigenvalues": model.eigenvalues_.tolist(),
        "normalized_cut": model.cut_,
        "distortion": model.distortion_,
        "seconds": seconds,
        "clusters": [{"label": j, "vertices": int((labels == j).sum())} for j in range(options.clusters)],
        "without_cluster": int((labels < 0).sum()),
        "output": options.output,
        "warnings": messages,
    }


def _sizes(hypergraph: Hypergraph) -> dict[str, Any]:
    sizes = hypergraph.edge_sizes
    return {
        "vertices": hypergraph.n_vertices,
        "edges": hypergraph.n_edges,
        "incidences": hypergraph.n_incidences,
        "smallest_edge": float(sizes.min(initial=np.inf)) if len(sizes) else None,
        "largest_edge": float(sizes.max(initial=0)) if len(sizes) else None,
    }


def _print_summary(result: dict[str, Any]) -> None:
    line(f"{result['file']}: {_counted(result)}")
    line(
        f"expansion {result['expansion']}, order {float(result['order']):g}, normalised cut "
        f"{result['normalized_cut']:.4f}, {result['passes']} passes, {format_seconds(result['seconds'])}"
    )
    if result["distortion"] > 1:
        line(f"pairs charge at most {result['distortion']:.3g} times what cutting an edge costs")
    line()
    line(f"{'cluster':>7}  {'vertices':>8}  {'share':>7}")
    for entry in result["clusters"]:
        share = entry["vertices"] / result["vertices"]
        line(f"{entry['label']:>7}  {entry['vertices']:>8}  {share:>7.1%}  {'#' * round(20 * share)}".rstrip())
    if result["without_cluster"]:
        share = result["without_cluster"] / result["vertices"]
        line(f"{'none':>7}  {result['without_cluster']:>8}  {share:>7.1%}")
    if result["output"]:
        line()
        line(f"labels written to {result['output']}")


def _counted(result: dict[str, Any]) -> str:
    low, high = result["smallest_edge"], result["largest_edge"]
    size = "" if low is None else f" of size {low:g}" if low == high else f" of size {low:g} to {high:g}"
    return f"{result['vertices']} vertices, {result['edges']} edges{size}, {result['incidences']} incidences"


def _convert(options: argparse.Namespace) -> int:
    if Path(options.target).exists() and Path(options.file).exists() and Path(options.target).samefile(options.file):
        raise ParameterError(f"output {options.target} is the input itself: choose another name.")
    with checked_option():
        check_target(options.target)
    hypergraph = _read(options)
    write_hypergraph(hypergraph, options.target)
    line(f"{options.target}: {_counted(_sizes(hypergraph))}")
    lost = "attributes and vertex weights of the source"
    if ".hgr" in Path(options.target).suffixes:
        lost = f"names, {lost}"
    line(f"not kept, if there were any: {lost}")
    return EXIT_OK


def _info(options: argparse.Namespace) -> int:
    hypergraph = _read(options)
    if hypergraph.n_vertices == 0:
        raise DataError(f"{options.file}: it has no vertices.")
    parts = np.bincount(hypergraph.components())
    degrees = hypergraph.degrees
    if not np.isfinite(degrees).all():
        raise DataError(f"{options.file}: the sums of its edge weights overflow; divide the weights by the largest.")
    facts = {
        "file": options.file,
        **_sizes(hypergraph),
        "repeated_vertices": hypergraph.has_repeats,
        "uniform_order": hypergraph.uniform_order,
        "degrees": {"min": degrees.min(), "median": float(np.median(degrees)), "max": degrees.max()},
        "parts": parts[parts > 1].tolist(),
        "vertices_without_neighbours": int((parts == 1).sum()),
    }
    if options.json:
        block(json.dumps(facts, indent=2))
        return EXIT_OK
    line(f"{options.file}: {_counted(facts)}" + (", with repeated vertices" if facts["repeated_vertices"] else ""))
    line(f"degrees {degrees.min():g} to {degrees.max():g}, median {np.median(degrees):g}")
    shown = ", ".join(map(str, facts["parts"][:5])) + (", …" if len(facts["parts"]) > 5 else "")
    shown = f" ({shown} vertices)" if shown else ""
    line(f"connected parts: {len(facts['parts'])}{shown}, {facts['vertices_without_neighbours']} alone")
    return EXIT_OK
