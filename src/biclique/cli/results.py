"""What ``biclique cluster`` prints about a clustering, as text and as JSON."""

import math
from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from biclique._typing import FloatArray, IntArray
from biclique.cli.opened_tables import OpenedTable
from biclique.cli.options import Facts
from biclique.cli.output import output_lines, printed
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.fit.settings import NEIGHBORHOODS
from biclique.progress import format_seconds
from biclique.report.shown_columns import Sums
from biclique.runtime.memory import format_bytes
from biclique.scores import clustering_error
from biclique.selection.count_search import pieces_of_a_cloud
from biclique.tables.diagnosis import counted

MOST_COLUMNS = 3
"""Columns that are named for each cluster."""
NAME_WIDTH = 24
"""Letters of a column in that list; longer names are cut."""
CERTAIN = 0.995
"""No mean probability is printed as 100 %: it is an estimate."""
CHOSEN = ("order_reason", "gamma", "gram", "gram_reason", "rank", "precision")
"""Facts that attributes of the model say."""
STORED = {
    "dense": "K is stored",
    "neighbors": "K is a graph",
    "tiled": "K is computed again in every pass",
    "fourier": "K by FFTs",
    "nystroem": "K from {rank} landmark rows",
    "features": "K from {rank} features",
}
"""How K is held, in words, by what ``gram_`` says."""

LEGEND = "sure: mean probability of its rows; set apart by: (mean - mean of the rest) / standard deviation"


def facts_of(
    model: BicliqueSpectralClustering,
    table: OpenedTable,
    labels: IntArray,
    classes: Sequence[str] | None,
    shown: Any,
    rows: FloatArray,
    shown_labels: IntArray,
) -> Facts:
    """The facts of a fit, by stable keys; ``shown``, all rows or some, as numbers ``rows``, set clusters apart."""
    sizes = np.bincount(labels)
    compared = copy(table.preparer).set_params(encode="one-hot")  # the numbers of levels are no quantities
    if table.preparer.categorical_places_:
        rows, _ = compared.transform_rows(shown)
    apart = _set_apart(compared.get_feature_names_out(), rows, shown_labels, len(sizes))
    sure = [float(share) if np.isfinite(share) else None for share in model.how_sure()]
    sure += [None] * (len(sizes) - len(sure))
    clusters: list[Facts] = [
        {"label": label, "rows": int(sizes[label]), "probability": sure[label], "set_apart_by": apart[label]}
        for label in range(len(sizes))
    ]
    error = rand_index = None
    if classes is not None:
        names_of_classes, truth = np.unique(classes, return_inverse=True)
        error, rand_index = clustering_error(truth, labels), float(adjusted_rand_score(truth, labels))
        for cluster in clusters:
            counts = Counter(names_of_classes[truth[labels == cluster["label"]]].tolist())
            for name, most in counts.most_common(1):
                cluster |= {"mostly": name, "purity": most / cluster["rows"]}
    selection = getattr(model, "k_selection_", None)
    approximation = None
    if model.approximation_ is not None:  # JSON has no NaN
        found = model.approximation_.facts()
        approximation = {name: value if math.isfinite(value) else None for name, value in found.items()}
    return {
        "rows": len(labels),
        "rows_left_out": len(table.kept) - len(labels),
        "columns": len(table.preparer.kinds_),
        "streamed": table.streamed,
        "scale": table.preparer.scale,
        "order": "inf" if np.isinf(model.order_) else model.order_,
        "affinity": model.affinity if isinstance(model.affinity, str) else "gower",
        "selected": None if selection is None else selection.explanation,
        "has_structure": None if selection is None else selection.has_structure,
        **{name: getattr(model, f"{name}_") for name in CHOSEN},
        "accuracy": _accuracy(model),
        "approximation": approximation,
        "n_neighbors": getattr(model, "n_neighbors_", None),
        "passes": model.n_passes_,
        "eigenvalues": model.eigenvalues_.tolist(),
        "cut_history": getattr(model, "cut_history_", np.empty(0)).tolist(),
        "clusters": clusters,
        "error": error,
        "adjusted_rand_index": rand_index,
    }


def _set_apart(names: Sequence[str], rows: FloatArray, labels: IntArray, n_clusters: int) -> list[list[Facts]]:
    """For every cluster the columns in which it differs most from the rest, the largest difference first."""
    apart = []
    for effects in Sums.of(rows, labels, n_clusters).effects:
        order = np.argsort(-np.nan_to_num(np.abs(effects), posinf=np.finfo(float).max), kind="stable")[:MOST_COLUMNS]
        most = [(names[j], float(f"{effects[j]:.6g}")) for j in order if np.abs(effects[j]) > 0]
        # JSON has no infinity: a column that separates a cluster from the rest without any spread has no number.
        apart.append([{"column": c, "difference": x if np.isfinite(x) else None, "above": x > 0} for c, x in most])
    return apart


# As text


def result_lines(facts: Facts) -> list[str]:
    """The facts as text."""
    left_out = f", {facts['rows_left_out']} left out" if facts["rows_left_out"] else ""
    columns = counted(facts["columns"], "column")
    chunks = ", read in chunks" if facts["streamed"] else ""
    lines = [
        f"{facts['table']}: {facts['rows']} rows{left_out}, {columns}, scale {facts['scale']}{chunks}",
        *_similarity_lines(facts),
    ]
    if facts["selected"]:
        lines.append(f"selected: {facts['selected']}")
    if facts["has_structure"] is False:
        lines.append(pieces_of_a_cloud(len(facts["clusters"])))
    lines += ["", *_cluster_lines(facts["clusters"], facts["rows"])]
    if facts["error"] is not None:
        lines += [
            "",
            f"error {facts['error']:.4f} against the known classes (best matching)",
            f"adjusted Rand index {facts['adjusted_rand_index']:.4f}",
        ]
    if facts["cut_history"]:
        before, *steps = facts["cut_history"]
        after = [before, *steps][-1]
        lines += ["", f"normalised cut {before:.6f} after k-means, {after:.6f} after {len(steps)} more steps"]
    lines += output_lines(facts["output"])
    if facts["report"]:
        lines.append(f"report written to {facts['report']}")
    if facts["saved"]:
        lines.append(f"model written to {facts['saved']['file']}: {format_bytes(facts['saved']['bytes'])}")
    return lines


def _similarity_lines(facts: Facts) -> list[str]:
    """``hypergraph of neighbourhoods: 600 landmarks, 7 nearest of each row; 1.4 s``; of a kernel, how K is held too."""
    order, seconds = f"order {float(facts['order']):g}", format_seconds(facts["seconds"])
    if facts["affinity"] == NEIGHBORHOODS:
        higher = "" if facts["order"] == 2 else f"; {order}"
        near = f"{facts['rank']} landmarks, {facts['n_neighbors']} nearest of each row"
        return [f"hypergraph of neighbourhoods: {near}{higher}; {seconds}"]
    gamma = "" if facts["gamma"] is None else f", gamma {facts['gamma']:.4g}"
    return [f"{facts['affinity']}{gamma}, {order}; {facts['passes']} passes, {seconds}", facts["accuracy"]]


def without_repeated(model: BicliqueSpectralClustering, warned: Sequence[str]) -> list[str]:
    """The warnings that lines of our own do not repeat: how exact it is, and whether there is structure."""
    selection = getattr(model, "k_selection_", None)
    repeated = [] if selection is None else [selection.structure.reason]
    repeated += [] if model.approximation_ is None else [str(model.approximation_)]
    return [text for text in warned if not any(words and words in text for words in repeated)]


def _accuracy(model: BicliqueSpectralClustering) -> str:
    """``approximate: K from 256 landmark rows in float32 (as asked for), eigenvalues within 3.0e-03 …``."""
    measured, reason = model.approximation_, model.gram_reason_
    exact = measured is None or measured.counts_as_exact
    kind = "exact" if exact and not reason.startswith("approximate") else "approximate"  # neighbours can be so too
    held = STORED.get(model.gram_, f"K by {model.gram_}").format(rank=model.rank_)
    error = "" if measured is None else f", {measured}"
    return f"{kind}: {held} in {model.precision_} ({reason.removeprefix(f'{kind}: ')}){error}"


def _cluster_lines(clusters: Sequence[Facts], n_rows: int) -> list[str]:
    apart = any(one["set_apart_by"] for one in clusters)
    mostly = [printed(f"{one['mostly']} ({one['purity']:.0%})") if "mostly" in one else "" for one in clusters]
    width = max(map(len, mostly))
    heads = [f"{'mostly':{width}}"] * bool(width) + ["set apart by"] * apart
    lines = ["  ".join(["cluster", f"{'rows':>8}", f"{'share':>7}", "sure", *heads])]
    for one, text in zip(clusters, mostly, strict=True):
        share = one["probability"]
        sure = "-" if share is None else f"{share:.0%}" if share < CERTAIN else ">99%"
        cells = [f"{one['label']:>7}", f"{one['rows']:>8}", f"{one['rows'] / n_rows:>7.1%}", f"{sure:>4}"]
        lines.append("  ".join([*cells, *[text.ljust(width)] * bool(width), _differences(one["set_apart_by"])]))
    return [line.rstrip() for line in lines] + [LEGEND] * apart


def _differences(apart: Sequence[Facts]) -> str:
    """``petal length -2.9, petal width -2.7``; without any spread: ``city=Oslo always higher``."""
    words = []
    for one in apart:
        name = one["column"] if len(one["column"]) <= NAME_WIDTH else one["column"][: NAME_WIDTH - 1] + "…"
        always = f"always {'higher' if one['above'] else 'lower'}"
        words.append(f"{name} {always if one['difference'] is None else format(one['difference'], '+.1f')}")
    return ", ".join(words)
