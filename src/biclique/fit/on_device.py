"""The fit of an exact K on a device: the same cut, solver and rules, on arrays that stay there."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.device.torch_tiles import device_type, place_rows
from biclique.exceptions import ParameterError
from biclique.fit.checks import warn_about_spread
from biclique.fit.cost import (
    DEVICE_SECONDS_PER_ROW,
    STARTED_PASSES,
    TYPICAL_PASSES,
    Cost,
    device_bytes,
    device_seconds,
    torch_cpu_seconds,
)
from biclique.fit.exact import SolverOptions, proposed, scales_rows, solve_cut, unit_rows, warn_about_pairs
from biclique.fit.prepare import LONG_SECONDS, Vertices, orders_asked, pool_kernel
from biclique.fit.rank import Pool
from biclique.gram.torch_gram import DeviceGram, TorchGram
from biclique.io import CHUNK_ROWS
from biclique.kernels import Kernel
from biclique.kernels.held import HeldRows
from biclique.neighbors.index import NeighborIndex
from biclique.progress import Progress
from biclique.runtime.arguments import check_random
from biclique.runtime.draws import draw_numbers
from biclique.runtime.namespace import moved, namespace, rows_on_host, to_host
from biclique.spectral import (
    BASIS_BLOCKS,
    Assignment,
    EigenResult,
    Extension,
    NormalizedCut,
    assign_sampled,
    basis_bytes,
    block_columns,
    device_kmeans,
    solves_directly,
    start_from_few,
)
from biclique.spectral.order import TEST_STARTS, TRY_ALL, Attempt, Dust, OrderRule, least_order

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

    def labels(self, X: Rows, rule: Callable[[FloatArray], IntArray], n_jobs: int | None) -> IntArray:
        """The labels of any rows by a rule; one that is like no training row takes the label of its nearest."""
        out = []
        for top in range(0, X.shape[0], CHUNK_ROWS):
            rows = X[top : top + CHUNK_ROWS]
            found, seen = self._embed_seen(rows, n_jobs)
            labels = rule(to_host(found))
            unseen = np.flatnonzero(~seen)
            if len(unseen):
                training = to_host(self.held.rows)
                asked = to_host(self.held.hold(rows))[unseen]
                near = NeighborIndex(training, search="exact", n_jobs=n_jobs).query(asked, 1)[1][:, 0]
                known, place = np.unique(near, return_inverse=True)
                own, _ = self._embed_held(known, n_jobs)
                labels[unseen] = rule(own)[place]
            out.append(labels)
        return np.concatenate(out) if out else np.empty(0, dtype=np.intp)

    def _embed_held(self, places: IntArray, n_jobs: int | None) -> tuple[FloatArray, np.ndarray]:
        """The embedding of some training rows."""
        rows = to_host(self.held.rows)[places].astype(np.float64)
        found, seen = self._embed_seen(rows if self.held.offset is None else rows + self.held.offset, n_jobs)
        return to_host(found), seen

    def _embed(self, X: Rows, n_jobs: int | None) -> Any:
        return self._embed_seen(X, n_jobs)[0]

    def _embed_seen(self, X: Rows, n_jobs: int | None) -> tuple[Any, np.ndarray]:
        cross = self.held.cross(X, n_jobs=n_jobs) if self.gram is None else self.gram.cross(X)
        found, seen = self.extension.embed_seen(cross)
        missing = self.n_columns - found.shape[1]
        return np.pad(to_host(found), ((0, 0), (0, missing))) if missing else found, seen


def fit_device(
    model: Any, X: Rows, weights: FloatArray, n_columns: int, n_clusters: int, progress: Progress, device: Any
) -> DeviceFit:
    """Solve the cut of the rows of X on a device.

    Rows travel there once, not at all where X is a tensor that lies there; a few thousand come to the host, from which
    the bandwidth is chosen. Equal rows are not made one.
    """
    random = check_random(model.random_state)
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
    rule = OrderRule.of(weights, n_clusters, orders_asked(model))
    if len(pool.distinct) <= n_clusters:
        rule = replace(rule, orders=rule.orders[:1])
    if len(rule.orders) > 1 and n > TRY_ALL:
        numbers = np.arange(len(pool.distinct))
        few = Vertices(pool.rows[pool.distinct], pool.distinct_weights, numbers, np.empty(0), numbers, False, None)
        rule = proposed(model, kernel, few, rule, n_columns, np.float32, random)
    probe = None
    if k > 0 and not solves_directly(n, k):
        seed = int(random.randint(2**31))
        probe = gram.normal((n, block_columns(k, n)), seed)
        if n >= START_FROM:
            some = draw_numbers(n, START_ROWS, np.random.RandomState(seed))
            few_gram = DeviceGram(TorchGram(kernel, X[moved(some, X)], device=held.device, precision=precision))
            probe = start_from_few(probe, few_gram, X, rule.orders[0], weights[some], seed, weights)
    del X  # the operator holds what it needs of them
    options = SolverOptions(tol=model.eigen_tol, max_passes=model.max_iter, precision=model.precision)

    def solve(order: float, last: Attempt[_Solved] | None) -> _Solved:
        before = None if last is None else last.result
        cut = (
            NormalizedCut(gram, order, weights, probe)
            if before is None
            else before.cut.at_order(order, before.pairs.space, block_columns(k, n))
        )
        watched = options
        if len(rule.orders) > 1 and order != rule.orders[-1]:
            dust = Dust(rule, cut, float(weights.sum()))
            watched = replace(options, give_up=lambda now, vectors: bool(dust(now, vectors)))
        pairs = solve_cut(cut, k, watched, random, progress, keep_space=len(rule.orders) > 1)
        return _Solved(cut, pairs, *Extension.fit(cut, pairs, gram.noise))

    def attempt(order: float, last: Attempt[_Solved] | None) -> Attempt[_Solved]:
        solved = solve(order, last)
        tested = device_kmeans(
            unit_rows(solved.rows),
            weights,
            rule.n_clusters,
            n_init=TEST_STARTS,
            random_state=check_random(deepcopy(model.random_state)),
        )
        refused = "" if solved.pairs.converged or order == rule.orders[-1] else "eigenvectors of dust"
        return Attempt(order, rule.smallest(to_host(tested.labels), weights), solved, refused)

    if model.order == "auto" and len(rule.orders) > 1:
        found, reason = least_order(rule, attempt)
        order, solved = found.order, found.result
    else:
        order = rule.orders[0]
        solved, reason = solve(order, None), "as asked for" if model.order != "auto" else "nothing to choose"
    pairs, extension, rows = solved.pairs, solved.extension, solved.rows
    warn_about_pairs(pairs, extension, n_columns)
    missing = n_columns - rows.shape[1]
    if missing:
        xp = namespace(rows)
        rows = xp.concatenate([rows, xp.zeros((n, missing), dtype=rows.dtype, device=rows.device)], axis=1)
    facts = {
        "gram": "cuda" if held.device.type == "cuda" else "torch",
        "gamma": gamma,
        "order": order,
        "order_reason": reason,
        "precision": "fast" if precision == "fast" else str(gram.dtype),
        "reason": f"exact: tiles on {held.device} by {held.engine}",
        "eigenvalues": np.pad(pairs.values, (0, missing)),
        "residuals": np.pad(pairs.residuals, (0, missing)),
        "n_passes": solved.cut.n_passes,
    }
    return DeviceFit(gram, extension, rows, facts)


@dataclass(frozen=True)
class _Solved:
    """A cut on the device with its eigenpairs and the embedding of its rows."""

    cut: NormalizedCut
    pairs: EigenResult
    extension: Extension
    rows: Any


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
    rows = unit_rows(fitted.rows) if scales_rows(model.row_normalize, model.assign_labels) else fitted.rows
    options: dict[str, Any] = {"n_init": model.n_init, "random_state": check_random(model.random_state)}
    if model.assign_labels == "kmeans":
        found = device_kmeans(rows, weights, model.n_clusters, **options)
    else:
        found = assign_sampled(model.assign_labels, rows, weights, model.n_clusters, cut=None, **options)
    return Assignment(to_host(found.labels).astype(np.intp), found.rule).contiguous()
