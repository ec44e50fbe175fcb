"""What ``biclique cluster`` prints about a clustering, as text and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from biclique._typing import FloatArray, IntArray
from biclique.cli.opened_tables import Work
from biclique.cli.options import Printing
from biclique.cli.output import line, print_output
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import printable
from biclique.progress import format_seconds
from biclique.report.shown_columns import effects_of
from biclique.scores import clustering_error

MOST_COLUMNS = 3
"""Columns that are named for each cluster."""
NAME_WIDTH = 24
"""Letters of a column in that list; longer names are cut."""


def print_result(options: Printing, result: dict[str, Any], model: BicliqueSpectralClustering) -> None:
    """The result as the options ask for."""
    error = "" if model.approximation_ is None else str(model.approximation_)
    if error and not options.json:  # how close the approximation is, is said once: by our own line
        result["warnings"] = [text for text in result["warnings"] if error not in text]
    exact = model.approximation_ is None or model.approximation_.counts_as_exact
    options.show(result, lambda facts: _print(facts, error, exact))


def facts_of(
    model: BicliqueSpectralClustering, work: Work, labels: IntArray, shown: FloatArray, shown_labels: IntArray
) -> dict[str, Any]:
    """The facts of a fit, by stable keys; ``shown`` are rows that tell what sets clusters apart: all, or some."""
    n_clusters = int(getattr(model, "n_clusters_", model.n_clusters))
    sizes = np.bincount(labels, minlength=n_clusters).tolist()
    codes = work.preparer.categorical_places_  # no quantities
    names = {j: str(name) for j, name in enumerate(work.preparer.get_feature_names_out()) if j not in codes}
    apart = _set_apart(shown[:, [*names]], shown_labels, [*names.values()], len(sizes))
    selection = getattr(model, "k_selection_", None)
    result: dict[str, Any] = {
        "rows": len(labels),
        "rows_left_out": len(work.kept) - len(labels),
        "columns": len(work.preparer.kinds_),
        "streamed": work.table.streamed,
        "scale": work.preparer.scale,
        "order": "inf" if np.isinf(model.order_) else model.order_,
        "order_reason": model.order_reason_,
        "affinity": model.affinity if isinstance(model.affinity, str) else "gower",
        "selected": None if selection is None else selection.explanation,
        "has_structure": None if selection is None else selection.has_structure,
        "gamma": model.gamma_,
        "gram": model.gram_,
        "gram_reason": model.gram_reason_,
        "rank": model.rank_,
        "approximation": None,
        "precision": model.precision_,
        "passes": model.n_passes_,
        "eigenvalues": model.eigenvalues_.tolist(),
        "cut_history": getattr(model, "cut_history_", np.empty(0)).tolist(),
        "clusters": _clusters(model, sizes, apart, labels, work.classes),
        "error": None,
        "adjusted_rand_index": None,
    }
    if model.approximation_ is not None:  # JSON has no NaN
        facts = model.approximation_.facts()
        result["approximation"] = {name: value if math.isfinite(value) else None for name, value in facts.items()}
    if work.classes is not None:
        truth = np.unique(work.classes, return_inverse=True)[1]
        result["error"] = clustering_error(truth, labels)
        result["adjusted_rand_index"] = float(adjusted_rand_score(truth, labels))
    return result


def _clusters(
    model: BicliqueSpectralClustering,
    sizes: Sequence[int],
    apart: list[list[dict[str, Any]]],
    labels: IntArray,
    classes: Sequence[str] | None,
) -> list[dict[str, Any]]:
    sure = model.how_sure()
    entries = []
    for cluster, rows in enumerate(sizes):
        known = cluster < len(sure) and np.isfinite(sure[cluster])
        entry: dict[str, Any] = {
            "label": cluster,
            "rows": rows,
            "probability": float(sure[cluster]) if known else None,
            "set_apart_by": apart[cluster],
        }
        if classes is not None and rows:
            counts = Counter(np.asarray(classes)[labels == cluster].tolist())
            [(name, most)] = counts.most_common(1)
            entry |= {"mostly": name, "purity": most / rows}
        entries.append(entry)
    return entries


def _set_apart(rows: FloatArray, labels: IntArray, names: Sequence[str], n_clusters: int) -> list[list[dict[str, Any]]]:
    """For every cluster the columns in which it differs most from the rest, the largest difference first."""
    out = []
    for effects in effects_of(rows, labels, n_clusters) if names else [()] * n_clusters:
        order = np.argsort(-np.nan_to_num(np.abs(effects), posinf=np.finfo(float).max), kind="stable")[:MOST_COLUMNS]
        most = [(names[j], float(f"{effects[j]:.6g}")) for j in order if np.abs(effects[j]) > 0]
        # JSON has no infinity: a column that separates a cluster from the rest without any spread has no number.
        out.append([{"column": c, "difference": x if np.isfinite(x) else None, "above": x > 0} for c, x in most])
    return out


# As text


def _print(result: dict[str, Any], error: str, exact: bool) -> None:
    left_out = f", {result['rows_left_out']} left out" if result["rows_left_out"] else ""
    chunks = ", read in chunks" if result["streamed"] else ""
    line(
        f"{result['table']}: {result['rows']} rows{left_out}, {result['columns']} columns, scale {result['scale']}"
        f"{chunks}"
    )
    gamma = f", gamma {result['gamma']:.4g}" if result["gamma"] is not None else ""
    line(
        f"order {float(result['order']):g}, {result['affinity']}{gamma}, {result['gram']} {result['precision']}, "
        f"{result['passes']} passes, {format_seconds(result['seconds'])}"
    )
    line(_gram_line(result, error, exact))
    if result["selected"]:
        line(f"selected: {result['selected']}")
    line()
    _print_clusters(result["clusters"], result["rows"])
    if result["error"] is not None:
        line()
        line(f"error {result['error']:.4f} against the known classes (best matching)")
        line(f"adjusted Rand index {result['adjusted_rand_index']:.4f}")
    if result["cut_history"]:
        before, *steps = result["cut_history"]
        line()
        line(f"normalised cut {before:.6f} after k-means, {[before, *steps][-1]:.6f} after {len(steps)} more steps")
    print_output(result["output"])
    if result["report"]:
        line(f"report written to {result['report']}")
    if result["saved"]:
        line(f"model written to {result['saved']['told']}")


def _gram_line(result: dict[str, Any], error: str, exact: bool) -> str:
    """``approximate: gram nystroem of rank 256 (as asked for), eigenvalues within 3.0e-03 …``."""
    rank, reason = result["rank"], result["gram_reason"]
    kind = "exact" if exact and not reason.startswith("approximate") else "approximate"  # neighbours can be so too
    reason = reason.removeprefix(f"{kind}: ")
    size = "" if rank is None else f" of rank {rank}"
    return f"{kind}: gram {result['gram']}{size} ({reason})" + (f", {error}" if error else "")


def _print_clusters(clusters: list[dict[str, Any]], n_rows: int) -> None:
    apart = any(entry["set_apart_by"] for entry in clusters)
    mostly = ["" if "mostly" not in entry else f"{entry['mostly']} ({entry['purity']:.0%})" for entry in clusters]
    width = max((len(printable(text)) for text in mostly), default=0)
    heads = [f"{'mostly':{width}}"] * bool(width) + ["set apart by"] * apart
    line("  ".join(["cluster", f"{'rows':>8}", f"{'share':>7}", "sure", *heads]).rstrip())
    for entry, text in zip(clusters, mostly, strict=True):
        sure = "-" if entry["probability"] is None else f"{entry['probability']:.0%}"
        cells = [f"{entry['label']:>7}", f"{entry['rows']:>8}", f"{entry['rows'] / n_rows:>7.1%}", f"{sure:>4}"]
        cells += [printable(text).ljust(width)] * bool(width)
        line("  ".join([*cells, ", ".join(map(_difference, entry["set_apart_by"]))]).rstrip())
    if apart:
        line("sure: mean probability of its rows; set apart by: (mean - mean of the rest) / standard deviation")


def _difference(one: dict[str, Any]) -> str:
    """``petal length -2.9``."""
    name = one["column"] if len(one["column"]) <= NAME_WIDTH else one["column"][: NAME_WIDTH - 1] + "…"
    if one["difference"] is None:
        return f"{name} {'+' if one['above'] else '-'}inf"
    return f"{name} {one['difference']:+.1f}"
