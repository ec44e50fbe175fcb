"""The fit of an exact K on a device: the same cut, solver and rules, on arrays that stay there."""

from __future__ import annotations

from typing import Any

import numpy as np

from biclique._typing import FloatArray, Rows
from biclique.checks import check_random
from biclique.cluster._checks import warn_about_spread
from biclique.cluster._features import Pool
from biclique.cluster._prepare import LONG_SECONDS, choose_order, pool_kernel
from biclique.cluster._spectrum import SolverOptions, solve_cut, unit_rows, warn_about_pairs
from biclique.exceptions import ParameterError
from biclique.gram import (
    DEVICE_SECONDS_PER_ROW,
    STARTED_PASSES,
    TYPICAL_PASSES,
    Cost,
    HeldRows,
    device_bytes,
    device_seconds,
    torch_cpu_seconds,
)
from biclique.gram.cuda import DeviceGram, TorchGram, device_type, place_rows
from biclique.io import CHUNK_ROWS, draw_numbers
from biclique.kernels import Kernel
from biclique.namespace import moved, namespace, rows_on_host, to_host
from biclique.progress import Progress
from biclique.spectral import (
    BASIS_BLOCKS,
    Assignment,
    Extension,
    NormalizedCut,
    assign_sampled,
    basis_bytes,
    block_columns,
    device_kmeans,
    solves_directly,
    start_from_few,
)

START_FROM, START_ROWS = 400_000, 8_192
"""From so many rows on the solver starts from the eigenvectors of so few."""

CHOICE_ROWS = 4_096
"""Rows from which the bandwidth is chosen."""


class DeviceFit:
    """A fitted embedding whose training rows, coefficients and embedding lie on a device.

    A copy that was pickled has them on the host, and goes on there.
    """

    def __init__(self, gram: Any, extension: Extension, rows: Any, facts: dict[str, Any]) -> None:
        self.gram = gram
        self.held: HeldRows = gram.held
        self.extension = extension
        self.rows = rows  # (n, n_columns), on the device
        self.n_columns = rows.shape[1]
        self.facts = facts

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "gram": None, "rows": None}
        return {**state, "extension": self.extension.to_host()}

    @property
    def on_device(self) -> bool:
        """Whether new rows that are a tensor are embedded where it lies."""
        return self.gram is not None

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows, on the host."""
        found = [to_host(self._embed(X[top : top + CHUNK_ROWS], n_jobs)) for top in range(0, X.shape[0], CHUNK_ROWS)]
        return np.concatenate(found) if found else np.empty((0, self.n_columns))

    def _embed(self, X: Rows, n_jobs: int | None) -> Any:
        cross = self.held.cross(X, n_jobs=n_jobs) if self.gram is None else self.gram.cross(X)
        found = self.extension.embed(cross)
        missing = self.n_columns - found.shape[1]
        return np.pad(to_host(found), ((0, 0), (0, missing))) if missing else found


def fit_device(model: Any, X: Rows, weights: FloatArray, n_columns: int, progress: Progress, device: Any) -> DeviceFit:
    """Solve the cut of the rows of X on a device.

    Rows travel there once, not at all where X is a tensor that lies there; a few thousand come to the host, from which
    the bandwidth is chosen. Equal rows are not made one.
    """
    random = check_random(model.random_state)
    order = choose_order(model)
    warn_about_spread(X, getattr(model, "feature_names_in_", None))
    counted = np.flatnonzero(weights > 0)
    if len(counted) < len(X):
        raise ParameterError("sample_weight of 0 works without device=: leave those rows out, and predict them.")
    chosen = draw_numbers(len(X), CHOICE_ROWS, np.random.RandomState(random.randint(2**31)))
    pool = Pool.of(rows_on_host(X, chosen), weights[chosen])
    kernel, gamma = pool_kernel(model, pool, random)
    if progress.enabled:
        cost = estimate_device(model, X, kernel, n_columns, device)
        if cost.seconds > LONG_SECONDS:
            progress.say(str(cost))
    given, X = X, place_rows(X, device)
    owned = X is not given
    del given
    precision = gram_precision(model)
    tick = progress.tick if progress.enabled else None
    held = TorchGram(kernel, X, device=device, precision=precision, tick=tick, owned=owned)
    gram = DeviceGram(held)
    n, k = gram.n, min(n_columns - 1, gram.n - 1)
    probe = None
    if k > 0 and not solves_directly(n, k):
        seed = int(random.randint(2**31))
        probe = gram.normal((n, block_columns(k, n)), seed)
        if n >= START_FROM:
            some = draw_numbers(n, START_ROWS, np.random.RandomState(seed))
            few = DeviceGram(TorchGram(kernel, X[moved(some, X)], device=held.device, precision=precision))
            probe = start_from_few(probe, few, X, order, weights[some], seed, weights)
    del X  # the operator holds what it needs of them
    cut = NormalizedCut(gram, order, weights, probe)
    options = SolverOptions(tol=model.eigen_tol, max_passes=model.max_iter, precision=model.precision)
    pairs = solve_cut(cut, k, options, random, progress)
    extension, rows = Extension.fit(cut, pairs, gram.noise)
    warn_about_pairs(pairs, extension, n_columns)
    missing = n_columns - rows.shape[1]
    if missing:
        xp = namespace(rows)
        rows = xp.concatenate([rows, xp.zeros((n, missing), dtype=rows.dtype, device=rows.device)], axis=1)
    facts = {
        "gram": "cuda" if held.device.type == "cuda" else "torch",
        "gamma": gamma,
        "order": order,
        "precision": "fast" if precision == "fast" else str(gram.dtype),
        "reason": f"exact: tiles on {held.device} by {held.engine}",
        "eigenvalues": np.pad(pairs.values, (0, missing)),
        "residuals": np.pad(pairs.residuals, (0, missing)),
        "n_passes": cut.n_passes,
    }
    return DeviceFit(gram, extension, rows, facts)


def gram_precision(model: Any) -> str:
    """The precision asked for, in the words of ``TorchGram``."""
    return model.precision if model.precision in ("fast", "float64") else "default"


def estimate_device(model: Any, X: Rows, kernel: Kernel, n_columns: int, device: Any) -> Cost:
    """Time and memory of ``fit_device``; neither torch nor the device is needed for it."""
    n, d = X.shape
    k = max(min(n_columns, n) - 1, 1)
    passes = STARTED_PASSES if n >= START_FROM else TYPICAL_PASSES
    precision = gram_precision(model)
    facts: dict[str, Any] = {"columns": block_columns(k, n), "precision": precision}
    if device_type(device) == "cpu":
        seconds = torch_cpu_seconds(kernel, to_host(X[:: max(n // CHOICE_ROWS, 1)]), n, passes=passes, **facts)
    else:
        seconds = device_seconds(kernel, n, d, passes=passes, device=device, **facts)
        seconds += DEVICE_SECONDS_PER_ROW * n * n_columns
    rows = n * d * (X.dtype.itemsize + (8 if precision == "float64" else 4))  # as they came, and held
    there = (
        rows + device_bytes(kernel, n, d, device=device, **facts) + basis_bytes(n, k, BASIS_BLOCKS) + 8 * n * n_columns
    )
    name = "cuda" if device_type(device) == "cuda" else "torch"
    return Cost(name, n, seconds, 8 * n * (n_columns + 2), str(device), there)


def assign_on_device(model: Any, fitted: DeviceFit, weights: FloatArray) -> Assignment:
    """Labels of the training rows, found where their embedding lies."""
    rows = unit_rows(fitted.rows) if model.row_normalize is True else fitted.rows
    options: dict[str, Any] = {"n_init": model.n_init, "random_state": check_random(model.random_state)}
    if model.assign_labels == "kmeans":
        found = device_kmeans(rows, weights, model.n_clusters, **options)
    else:
        found = assign_sampled(model.assign_labels, rows, weights, model.n_clusters, cut=None, **options)
    return Assignment(to_host(found.labels).astype(np.intp), found.rule)
