"""What ``biclique cluster`` prints about a clustering, as text and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from biclique._typing import FloatArray, IntArray
from biclique.cli.options import Printing
from biclique.cli.output import block, line, print_warnings
from biclique.cli.standard_streams import shown_output
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import printable
from biclique.progress import format_seconds
from biclique.report.shown_columns import effects_of
from biclique.scores import clustering_error

MOST_COLUMNS = 3
"""Columns that are named for each cluster."""
NAME_WIDTH = 24
"""Letters of a column in that list; longer names are cut."""


@dataclass(frozen=True)
class Clustered:
    """What is known of a table and its clusters besides the model."""

    name: str
    rows: int
    left_out: int
    columns: int
    scale: str
    sizes: Sequence[int]
    """Rows of every cluster."""
    streamed: bool = False
    """Whether the table was never in memory as a whole."""
    shown: FloatArray | None = None
    """Rows that show what sets clusters apart: all, or some."""
    shown_labels: IntArray | None = None
    names: Sequence[str] = ()
    """Names of the columns of ``shown``."""
    labels: IntArray | None = None
    classes: Sequence[str] | None = None
    """The known class of every row."""


def print_result(options: Printing, result: dict[str, Any], model: BicliqueSpectralClustering) -> None:
    """The result as the options ask for."""
    if options.json:
        block(json.dumps(result, indent=2))
    elif not options.quiet:
        error = "" if model.approximation_ is None else str(model.approximation_)
        # How close the approximation is, is said once: by our own line.
        print_warnings([text for text in result["warnings"] if not error or error not in text])
        _print(result, error, model.approximation_ is None or model.approximation_.counts_as_exact)


def result_of(model: BicliqueSpectralClustering, found: Clustered) -> dict[str, Any]:
    """The facts of a fit, by stable keys."""
    selection = getattr(model, "k_selection_", None)
    result: dict[str, Any] = {
        "table": found.name,
        "rows": found.rows,
        "rows_left_out": found.left_out,
        "columns": found.columns,
        "streamed": found.streamed,
        "scale": found.scale,
        "order": "inf" if np.isinf(model.order_) else model.order_,
        "order_reason": model.order_reason_,
        "affinity": model.affinity if isinstance(model.affinity, str) else "gower",
        "selected": None if selection is None else selection.told,
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
        "clusters": _clusters(model, found),
        "error": None,
        "adjusted_rand_index": None,
    }
    if model.approximation_ is not None:  # JSON has no NaN
        facts = model.approximation_.facts()
        result["approximation"] = {name: value if math.isfinite(value) else None for name, value in facts.items()}
    if found.classes is not None and found.labels is not None:
        truth = np.unique(list(found.classes), return_inverse=True)[1]
        result["error"] = clustering_error(truth, found.labels)
        result["adjusted_rand_index"] = float(adjusted_rand_score(truth, found.labels))
    return result


def _clusters(model: BicliqueSpectralClustering, found: Clustered) -> list[dict[str, Any]]:
    sure, apart = model.how_sure(), _set_apart(found)
    classes = None if found.classes is None else np.asarray(found.classes, dtype=object)
    entries = []
    for cluster, rows in enumerate(found.sizes):
        known = cluster < len(sure) and np.isfinite(sure[cluster])
        entry: dict[str, Any] = {
            "label": cluster,
            "rows": rows,
            "probability": float(sure[cluster]) if known else None,
            "set_apart_by": apart[cluster] if apart else [],
        }
        if classes is not None and rows:
            names, counts = np.unique(classes[found.labels == cluster], return_counts=True)
            entry["mostly"] = str(names[counts.argmax()])
            entry["purity"] = int(counts.max()) / rows
        entries.append(entry)
    return entries


def _set_apart(found: Clustered) -> list[list[dict[str, Any]]]:
    """For every cluster the columns in which it differs most from the rest, the largest difference first."""
    if found.shown is None or found.shown_labels is None or not found.names:
        return []
    out = []
    for row in effects_of(found.shown, found.shown_labels, len(found.sizes)):
        order = np.argsort(-np.nan_to_num(np.abs(row), posinf=np.finfo(float).max), kind="stable")[:MOST_COLUMNS]
        most = [(found.names[j], float(f"{row[j]:.6g}")) for j in order if np.abs(row[j]) > 0]
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
    if result["output"]:
        line()
        line(f"labels written to {shown_output(result['output'])}")
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
