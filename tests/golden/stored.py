"""A few golden cases whose results are stored: what of them is the same on every CPU.

The data are well separated. Embeddings are compared by the products of a few of their rows, because the signs of
eigenvectors, and the axes of those with one eigenvalue, are not determined.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.cases import CASES
from tests.golden.compare import difference
from tests.golden.record import Record, run_case

FILE = Path(__file__).with_name("stored.json")

STORED = (
    "kernel/rbf/auto/order auto",
    "kernel/rbf/dense/order 2",
    "kernel/rbf/tiled/order 2.1",
    "kernel/rbf/nystroem/order 3",
    "kernel/rbf/features/order 4",
    "kernel/laplacian/dense/order inf",
    "kernel/polynomial/tiled/order 8",
    "kernel/linear/nystroem/order 2.1",
    "kernel/cosine/dense/order 8",
    "kernel/chi2/dense/order 2",
    "kernel/function/dense/order 4",
    "kernel/Kernel/tiled/order 2",
    "kernel/InnerProductKernel/dense/order 8",
    "order/neighbors/auto",
    "order/neighbors/4",
    "order/similarities/2.1",
    "order/dusty/2",
    "order/dusty/4",
    "symmetric/dense/3",
    "assign/cluster_qr/similarities/False",
    "assign/discretize/parts/True",
    "assign/kernel_kmeans/parts/False",
    "weights/integers/dense",
    "weights/zeros/nystroem",
    "shape/repeated/dense",
    "shape/few/auto",
    "shape/outlier/tiled",
    "precision/float64/far",
    "neighbors/given/connectivity",
    "given/blocks/2",
    "given/indefinite/kernel k-means",
    "source/csr/auto",
    "source/path of npy/auto",
    "source/list of chunks/features",
    "shape/parted/embedding",
    "hypergraph/star/2",
    "hypergraph/function/3.5",
    "hypergraph/separate/2",
    "subspaces/n_rounds 2, n_draws 100",
    "select/n_clusters/blobs",
    "select/order/neighbors",
    "refused/NaN",
    "refused/not symmetric",
)
"""Of all cases, those that are quick and whose numbers are well determined."""

EMBEDDINGS = ("embedding_", "transform(training)", "transform(new)", "transform(far)")
LEFT_OUT = (
    *("residuals_", "n_passes_", "n_iter_", "cut_history_", "approximation_", "subspaces_"),
    *("k_selection_.counted", "selection_.judged", "rows_left_out_"),
)
"""Rounding, what depends on it, bases, whose signs are not determined, and candidates that were not chosen."""
ROWS = 8  # of an embedding, at even steps
DIGITS = 12


def essence(record: Record) -> dict[str, Any]:
    """What of a record is the same on every CPU, as JSON can hold it."""
    kept: dict[str, Any] = {}
    waves = record.get("gram_") == "features"  # cosines of large numbers, which lose their digits
    for name, value in record.items():
        if name.startswith(LEFT_OUT) or (waves and name.endswith("(far)")):
            continue
        if name in EMBEDDINGS and isinstance(value, np.ndarray):
            rows = value[np.linspace(0, len(value) - 1, min(ROWS, len(value))).astype(int)]
            value = rows @ rows.T
        if name == "warnings" or name.endswith(("_reason_", ".reason")):
            value = re.sub(r"\d[\d.,e+-]*", "#", str(value))
        kept[name] = _plain(value)
    return kept


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(member) for member in value.tolist()]
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def changes(name: str, stored: dict[str, Any]) -> list[str]:
    """Run a case; how it differs from what is stored."""
    record = run_case(CASES[name])
    found = essence(record)
    tolerance = 1e-4 if record.get("precision_") == "float32" else 1e-7
    said = [f"{key} is there in one alone" for key in sorted(stored.keys() ^ found.keys())]
    for key in sorted(stored.keys() & found.keys()):
        old, new = (np.array(v) if isinstance(v, list) else v for v in (stored[key], found[key]))
        how = difference(old, new, tolerance)
        if how:
            said.append(f"{key} {how}")
    return said


def read() -> dict[str, dict[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def write() -> None:
    """One case a line, so that a change shows which."""
    lines = [f"{json.dumps(name)}: {json.dumps(essence(run_case(CASES[name])), ensure_ascii=False)}" for name in STORED]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
