"""What the commands share: kinds of options, warnings, summaries, scales."""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import RobustScaler

from biclique._typing import FloatArray, IntArray, Rows
from biclique.cli.output import EXIT_OK, block, line, print_warnings
from biclique.cli.standard_streams import shown_output
from biclique.cluster import BicliqueSpectralClustering
from biclique.exceptions import BicliqueWarning, DataError, ParameterError, printable
from biclique.fit.plan import Plan, barrier_to_chunks
from biclique.gram import MeasuredError
from biclique.io.sources import varies
from biclique.models import Saved
from biclique.progress import PLAIN_SECONDS, Progress, format_seconds
from biclique.report.shown_columns import effects_of
from biclique.scores import clustering_error
from biclique.spectral.assign import ASSIGNERS
from biclique.tables.atomic_files import is_stream

# Kinds of options


def number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def rank(text: str) -> int | str:
    if text not in ("auto", "all") and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, auto or all, got {text!r}")
    return int(text) if text.isdecimal() else text


def count_or_select(text: str) -> int | str:
    if text == "select":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or select, got {text!r}") from None


def seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**32 - 1, got {text!r}")
    return int(text)


def order(text: str) -> float | str:
    value = number_or_word(text)
    if isinstance(value, str) and value != "auto":
        raise argparse.ArgumentTypeError(f"must be a number from 2 to inf, or auto, got {text!r}")
    return value


def add_assignment_options(group: argparse._ArgumentGroup) -> None:
    """From the embedding to labels: the same for tables and hypergraphs."""
    group.add_argument("--assign-labels", choices=list(ASSIGNERS), default="kmeans", help="(default: kmeans)")
    group.add_argument("--n-init", type=int, default=10, metavar="N", help="starts of k-means (default: 10)")
    group.add_argument("--seed", type=seed, default=0, help="of everything random (default: 0)")


def add_work_options(group: argparse._ArgumentGroup, *, max_iter: int, passes_over: str) -> None:
    """Eigenpairs, memory, threads and output: the same for tables and hypergraphs."""
    group.add_argument("--tol", type=number_or_word, default="auto", help="of eigenpairs, relative to the eigengap")
    group.add_argument(
        "--max-iter", type=int, default=max_iter, metavar="N", help=f"most passes over the {passes_over}"
    )
    group.add_argument(
        "--memory-limit", default="auto", metavar="SIZE", help="such as 4GB (default: half of what is free)"
    )
    add_run_options(group)


def add_run_options(group: argparse._ActionsContainer) -> None:
    """Threads, and what is printed."""
    group.add_argument("--jobs", type=int, default=None, metavar="N", help="threads (default: every core)")
    group.add_argument("--json", action="store_true", help="print the result as JSON")
    group.add_argument("-q", "--quiet", action="store_true", help="print errors only")


@contextmanager
def checked_option() -> Iterator[None]:
    """What is wrong with the name of an output is wrong with an option: exit code 2."""
    try:
        yield
    except DataError as error:
        raise ParameterError(*error.args) from error


def check_apart(what: str, path: str | None, *others: str | None) -> None:
    """Refuse to write over another file of the same command. Pipes and devices take several outputs."""
    if path is None or is_stream(path):
        return
    for other in filter(None, others):
        same = os.path.realpath(path) == os.path.realpath(other)
        if same or (os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)):
            raise DataError(f"{what} {path} is another file of this command: choose another name.")


def check_rows(name: str, kept: int, rows: int) -> None:
    """Refuse a table of which less than two rows are left."""
    if kept >= 2:
        return
    gaps = kept < rows
    why = " without missing values" if gaps else ""
    way = (
        "fill the gaps in with --missing mean, or leave out the columns that have them with --drop"
        if gaps
        else "add rows, or label it by a saved model (biclique predict)"
    )
    few = ("no row", "only one row")[kept]
    raise DataError(f"{name}: {few}{why}; a table needs at least 2 rows to be clustered: {way}.")


# Warnings and progress


def progress_of(options: argparse.Namespace) -> Progress:
    """Progress of work that no model does."""
    return Progress.of(0 if options.quiet else PLAIN_SECONDS)


@contextmanager
def caught_messages() -> Iterator[list[str]]:
    """Our warnings as a list of texts, which is filled when the block ends."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True, action="always", category=BicliqueWarning) as caught:
        yield messages
    messages.extend(str(w.message) for w in caught if issubclass(w.category, BicliqueWarning))


MOST_TELLING = 3
"""Columns that are named for each cluster."""
NAME_WIDTH = 24
"""Of a column in that list; longer names are cut."""


# What ``biclique cluster`` prints about a clustering, as text and as JSON


@dataclass
class Classes:
    """Known classes: numbers by their first appearance, chunk by chunk, and their names."""

    numbers: dict[str, int] = field(default_factory=dict)
    codes: list[IntArray] = field(default_factory=list)

    def add(self, texts: Iterable[str]) -> None:
        numbers = self.numbers
        self.codes.append(np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int32))


@dataclass(frozen=True)
class Facts:
    """What is known of a table besides its clusters."""

    name: str
    rows: int
    left_out: int
    columns: int
    classes: Classes | None = None
    streamed: bool = False
    seen: FloatArray | None = None
    """Rows that show what sets clusters apart: all, or some."""
    numbers: IntArray | None = None
    """Which rows these are; None: all."""
    names: Sequence[str] = ()
    """Of the columns of ``seen``."""
    sizes: Sequence[int] | None = None
    """Rows of the clusters, if labels are not in memory."""


def report(
    model: BicliqueSpectralClustering,
    facts: Facts,
    options: argparse.Namespace,
    seconds: float,
    messages: list[str],
    saved: Saved | None = None,
) -> None:
    """Print the result as the options ask for."""
    if options.quiet and not options.json:
        return
    result = _summary(model, facts, options, seconds, messages, saved)
    if options.json:
        block(json.dumps(result, indent=2))
        return
    measured = model.approximation_
    error, exact = ("", True) if measured is None else (str(measured), measured.counts_as_exact)
    # How close the approximation is, is said once: by our own line.
    print_warnings([m for m in messages if not error or error not in m])
    _print_summary(result, error, exact)


def _summary(
    model: BicliqueSpectralClustering,
    facts: Facts,
    options: argparse.Namespace,
    seconds: float,
    messages: list[str],
    saved: Saved | None,
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "table": facts.name,
        "rows": facts.rows,
        "rows_left_out": facts.left_out,
        "columns": facts.columns,
        "streamed": facts.streamed,
        "scale": options.scale,
        "order": "inf" if np.isinf(model.order_) else model.order_,
        "order_reason": model.order_reason_,
        "affinity": model.plan_.settings.kernel.affinity,
        "selected": model.plan_.selected or None,
        "has_structure": getattr(model, "has_structure_", None),
        "gamma": model.gamma_,
        "gram": model.gram_,
        "gram_reason": model.gram_reason_,
        "rank": model.rank_,
        "approximation": _approximation(model.approximation_),
        "precision": model.precision_,
        "passes": model.n_passes_,
        "eigenvalues": model.eigenvalues_.tolist(),
        "seconds": seconds,
        "cut_history": getattr(model, "cut_history_", np.empty(0)).tolist(),
        "clusters": [],
        "error": None,
        "adjusted_rand_index": None,
        "output": options.output,
        "report": options.report,
        "saved": None if saved is None else {"file": saved.path, "bytes": saved.bytes, "told": str(saved)},
        "warnings": messages,
    }
    apart, sure = _set_apart(model, facts), model.how_sure()
    truth = names = None
    if facts.classes is not None:
        truth, names = np.concatenate(facts.classes.codes), list(facts.classes.numbers)
    for cluster, rows in enumerate(facts.sizes or ()):
        result["clusters"].append({"label": cluster, "rows": rows, "probability": None, "set_apart_by": []})
    for cluster in range(model.plan_.settings.n_groups) if facts.sizes is None else ():
        inside = model.labels_ == cluster
        entry: dict[str, Any] = {"label": cluster, "rows": int(inside.sum())}
        known = cluster < len(sure) and np.isfinite(sure[cluster])
        entry["probability"] = float(sure[cluster]) if known else None
        entry["set_apart_by"] = apart[cluster] if cluster < len(apart) else []
        if truth is not None and names is not None and inside.any():
            counts = np.bincount(truth[inside])
            entry["mostly"] = names[int(counts.argmax())]
            entry["purity"] = int(counts.max()) / entry["rows"]
        result["clusters"].append(entry)
    if truth is not None:
        result["error"] = clustering_error(truth, model.labels_)
        result["adjusted_rand_index"] = float(adjusted_rand_score(truth, model.labels_))
    return result


def _set_apart(model: BicliqueSpectralClustering, facts: Facts) -> list[list[dict[str, Any]]]:
    """For every cluster the columns in which it differs most from the rest, the largest difference first."""
    if facts.seen is None or not facts.names:
        return []
    labels = model.labels_ if facts.numbers is None else model.labels_[facts.numbers]
    out = []
    for row in effects_of(facts.seen, labels, model.plan_.settings.n_groups):
        order = np.argsort(-np.nan_to_num(np.abs(row), posinf=np.finfo(float).max), kind="stable")[:MOST_TELLING]
        told = [(facts.names[j], float(f"{row[j]:.6g}")) for j in order if np.abs(row[j]) > 0]
        # JSON has no infinity: a column that tells a cluster from the rest without any spread has no number.
        out.append([{"column": c, "difference": x if np.isfinite(x) else None, "above": x > 0} for c, x in told])
    return out


def _approximation(error: MeasuredError | None) -> dict[str, float | None] | None:
    """JSON has no NaN."""
    if error is None:
        return None
    return {name: value if math.isfinite(value) else None for name, value in error.facts().items()}


def _gram_line(result: dict[str, Any], error: str, exact: bool) -> str:
    """``approximate: gram nystroem of rank 256 (as asked for), eigenvalues within 3.0e-03 …``."""
    rank, reason = result["rank"], result["gram_reason"]
    kind = "exact" if exact and not reason.startswith("approximate") else "approximate"  # neighbours can be so too
    reason = reason.removeprefix(f"{kind}: ")
    size = "" if rank is None else f" of rank {rank}"
    return f"{kind}: gram {result['gram']}{size} ({reason})" + (f", {error}" if error else "")


def _print_summary(result: dict[str, Any], error: str, exact: bool) -> None:
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
    apart = any(entry["set_apart_by"] for entry in result["clusters"])
    mostly = [
        "" if "mostly" not in entry else f"{entry['mostly']} ({entry['purity']:.0%})" for entry in result["clusters"]
    ]
    width = max((len(printable(text)) for text in mostly), default=0)
    heads = [f"{'mostly':{width}}" if width else "", "set apart by" if apart else ""]
    line("  ".join(["cluster", f"{'rows':>8}", f"{'share':>7}", "sure", *(head for head in heads if head)]).rstrip())
    for entry, text in zip(result["clusters"], mostly, strict=True):
        sure = "-" if entry["probability"] is None else f"{entry['probability']:.0%}"
        cells = [f"{entry['label']:>7}", f"{entry['rows']:>8}", f"{entry['rows'] / result['rows']:>7.1%}", f"{sure:>4}"]
        cells += [printable(text).ljust(width)] if width else []
        line("  ".join([*cells, ", ".join(_telling(one) for one in entry["set_apart_by"])]).rstrip())
    if apart:
        line("sure: mean probability of its rows; set apart by: (mean - mean of the rest) / standard deviation")
    if result["error"] is not None:
        line()
        line(f"error {result['error']:.4f} against the known classes (best matching)")
        line(f"adjusted Rand index {result['adjusted_rand_index']:.4f}")
    if result["cut_history"]:
        before, after = result["cut_history"][0], result["cut_history"][-1]
        line()
        line(
            f"normalised cut {before:.6f} after k-means, {after:.6f} after {len(result['cut_history']) - 1} more steps"
        )
    if result["output"]:
        line()
        line(f"labels written to {shown_output(result['output'])}")
    if result["report"]:
        line(f"report written to {result['report']}")
    if result["saved"]:
        line(f"model written to {result['saved']['told']}")


def _telling(one: dict[str, Any]) -> str:
    """``petal length -2.9``."""
    name = one["column"] if len(one["column"]) <= NAME_WIDTH else one["column"][: NAME_WIDTH - 1] + "…"
    if one["difference"] is None:
        return f"{name} {'+' if one['above'] else '-'}inf"
    return f"{name} {one['difference']:+.1f}"


# Before a fit: whether it can do without the rows in memory, and what it would take


def needs_memory(model: BicliqueSpectralClustering) -> tuple[str, str] | None:
    """The option that cannot do with rows in chunks, and what can."""
    barrier = barrier_to_chunks(model._settings())
    if barrier is None:
        return None
    name, other = barrier
    option = f"--{name.replace('_', '-')}"
    return f"{option} {getattr(model, name)}", "leave it out" if other == "None" else f"use {option} {other}"


def print_estimate(plan: Plan, facts: dict[str, Any], how: str, options: argparse.Namespace) -> int:
    """What a fit would do, in words or as values; ``how`` the rows are read, if not at once."""
    if options.json:
        block(json.dumps({**facts, **_plan_facts(plan)}, indent=2))
        return EXIT_OK
    line(f"{facts['table']}: {facts['rows']} rows, {facts['columns']} columns{', ' if how else ''}{how}")
    for told in str(plan).splitlines():
        line(told)
    line(f"{plan.cost} (estimate; nothing was computed)")
    return EXIT_OK


def _plan_facts(plan: Plan) -> dict[str, Any]:
    facts: dict[str, Any] = {"gram": plan.gram, "gram_reason": plan.gram_reason, "order": plan.rule}
    facts |= {"gamma": plan.gamma, "precision": plan.precision, "seconds": plan.cost.seconds, "bytes": plan.bytes}
    if plan.selected:
        facts["selected"] = plan.selected
    if plan.rank is not None:
        facts["rank"] = plan.rank
    if plan.device is not None:
        facts |= {"device": plan.device, "device_bytes": plan.device_bytes}
    return facts


# What ``--scale`` does to columns of rows that are not in memory: by their moments, or by a sample


def constant_note(names: Sequence[str]) -> list[str]:
    """What there is to say about columns with a single value, if there are any."""
    told = ", ".join(repr(name) for name in names)
    return [f"constant columns tell nothing apart: {told}."] if names else []


def column_scale(
    kind: str, mean: FloatArray, deviation: FloatArray, n: int, size: int, draw: Callable[[int], Rows]
) -> tuple[FloatArray, FloatArray, list[str]]:
    """What is subtracted from the columns of n rows, what they are divided by, and what there is to say about it.

    "robust" needs medians and quartiles: those of ``size`` rows, or of all if there are no more.
    """
    if kind != "robust":
        return mean, np.where(varies(mean, deviation**2, n), deviation, 1.0), []
    scaler = RobustScaler().fit(np.asarray(draw(min(size, n)), dtype=np.float64))
    told = f"--scale robust took medians and quartiles from a sample of {size} of {n} rows."
    return scaler.center_, scaler.scale_, [told] if size < n else []
