"""What ``--scale`` does to columns of rows that are not in memory: by their moments, or by a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.preprocessing import RobustScaler

from biclique._typing import FloatArray, Rows
from biclique.io.sources import varies


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
