"""X and its weights for functions, which have no fitted names of columns to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from biclique._typing import FloatArray, Rows
from biclique.exceptions import DataError
from biclique.fit.settings import KernelSettings
from biclique.kernels.named import check_rows_for_kernel
from biclique.rows.checks import check_given, check_values, check_weights
from biclique.runtime.namespace import on_host, to_host

NEIGHBORHOODS = KernelSettings()
"""Functions that are not asked for a kernel cut the hypergraph of neighbourhoods."""


def read_rows(X: Any, sample_weight: Any, kernel: KernelSettings = NEIGHBORHOODS) -> tuple[Rows, FloatArray]:
    """X as a float array or a CSR matrix, checked, and the weight of every row."""
    check_given(X)
    rows: Rows = check_array(
        X if on_host(X) else to_host(X.detach()),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_samples=2,
        input_name="X",
    )
    check_values(rows, None, squared=not kernel.given)
    if kernel.given and rows.shape[0] != rows.shape[1]:
        raise DataError(
            f"affinity={kernel.affinity!r} needs a square matrix, got X of shape {rows.shape}: leave affinity at 'rbf' "
            "for a table of features."
        )
    if kernel.of_rows:
        check_rows_for_kernel(kernel.affinity, rows)
    return rows, check_weights(sample_weight, rows.shape[0])
