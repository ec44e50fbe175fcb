"""What a fit decides before it computes: how K is stored, its kernel, γ and precision; and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from biclique._typing import Device, FloatArray, IntArray, Rows
from biclique.device.torch_tiles import check_device_kernel, check_device_precision, device_type, has_tiles
from biclique.exceptions import DataError, DegreeError, ParameterError
from biclique.features.maps import FEATURE_MAPS, MOST_EXACT_COLUMNS, exact_columns, map_kind
from biclique.features.neighborhoods import canonical_order
from biclique.fit.settings import FACTORED, Settings
from biclique.gram.by_name import GRAMS
from biclique.gram.dense import dense_bytes
from biclique.gram.operator import MeasuredError
from biclique.gram.tiled import tiled_bytes
from biclique.kernels.gamma_rules import bandwidth
from biclique.kernels.gower import Columns
from biclique.kernels.held import FLOAT32_ERROR, HeldRows, float32_error
from biclique.kernels.kernel import Kernel
from biclique.kernels.named import needs_gamma, precise_kernel
from biclique.neighbors.index import search_bytes, uses_tree
from biclique.rows.array import RowSource, Vertices, digests, distinct_given, distinct_rows, with_zeros
from biclique.runtime.memory import format_bytes, require_memory
from biclique.runtime.namespace import on_host
from biclique.spectral.assign import ASSIGNERS
from biclique.spectral.rounding import Assignment
from biclique.spectral.solver import basis_bytes, block_columns, direct_bytes, solves_directly

STORE_BELOW = 4096
"""Up to here a stored K (128 MiB) is quick to build and gives float64 throughout."""

STORE_SLOW_BELOW = 20_000
"""The same for a kernel that is slow to compute (3 GB)."""

FEW_EXACT_COLUMNS = 512
"""Exact features of so many columns are taken for rows that are not in memory."""

HOPELESS_ERROR = 1e-2
"""Above this ``float32_error``, float32 is refused even when asked for."""

GRAPH_NEIGHBORS = 10
"""``n_neighbors`` of a neighbour graph, as in scikit-learn: with fewer rows, all of them are neighbours."""

BYTES_PER_NEIGHBOR = 120
"""Of a graph while it is made, for every row and neighbour."""

OF_NEIGHBORHOODS = "neighborhoods", "the hypergraph of neighbourhoods"
"""How the K of the default is stored, and why."""

RANK = 1_000
"""``rank="auto"``: landmarks or features of a kernel."""


@dataclass(frozen=True)
class Chosen:
    """What a fit chose, and why."""

    gram: str
    gram_reason: str
    n_rows: int
    """Rows that are fitted: the distinct ones, if equal rows are made one."""
    kernel: Kernel | None = None
    gamma: float | None = None
    columns: Columns | None = None
    """What is known of the columns of X, for a kernel that needs it."""
    order: float = 2.0
    order_reason: str = ""
    precision: str = "float64"
    rank: int | None = None
    """Of a factored K."""
    n_neighbors: int | None = None
    """r in effect, of neighbourhoods."""
    error: MeasuredError | None = None
    """Of an approximate K."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of kernel values."""
        return np.dtype(np.float32 if self.precision == "fast" else self.precision)


# How K is stored


def choose_gram(settings: Settings, source: RowSource, n: int | None) -> tuple[str, str]:
    """How K of n distinct rows is stored, and why. All of ``gram="auto"`` is exact for rows in memory."""
    kernel, gram = settings.kernel, settings.gram
    if kernel.neighborhoods:
        return OF_NEIGHBORHOODS
    if kernel.neighbors:
        return "neighbors", "the graph is given" if kernel.given else "a sparse matrix of nearest neighbours"
    if kernel.given:
        return "sparse" if sparse.issparse(source.held) else "dense", "the matrix is given"
    if source.device is not None and not settings.factored:
        return "cuda" if device_type(source.device) == "cuda" else "torch", f"exact: tiles on {source.device}"
    if source.device is not None:
        return gram, f"as asked for, on {source.device}"
    if gram != "auto":
        return gram, "as asked for"
    if not source.in_memory:
        columns = exact_columns(kernel.kernel(), source.n_columns)
        if columns is not None and columns <= FEW_EXACT_COLUMNS:
            return "features", "exact: the kernel is an inner product of few columns"
        return "nystroem", "approximate: the rows are not in memory"
    n = n or 0
    size = format_bytes(dense_bytes(n))
    slow = not kernel.kernel().inner_product or sparse.issparse(source.held)
    if n <= STORE_BELOW or (slow and n <= STORE_SLOW_BELOW):
        return "dense", f"exact: the matrix of {n} rows takes {size}"
    return "tiled", f"exact: the matrix of {n} rows would take {size}"


def choose_precision(settings: Settings, gram: str, kernel: Kernel, X: Rows) -> str:
    """The precision of kernel values: float32 for what is computed anew, unless its rounding would show.

    Landmarks of a kernel that is not a function of x − y have float64: values are dominated by what all rows share, and
    W^(−1/2) magnifies the rounding of that over what tells rows apart.
    """
    asked = settings.precision
    if asked == "float64" or (gram in GRAMS and gram != "tiled"):
        return "float64"
    landmarks = gram in FEATURE_MAPS and FEATURE_MAPS[gram].has_landmarks
    if asked == "auto" and landmarks and not kernel.translation_invariant:
        return "float64"
    error = float32_error(HeldRows(kernel, X, np.float32), X)
    if asked == "float32" and error > HOPELESS_ERROR:
        raise ParameterError(
            f"precision='float32' would give kernel values off by {error:.1g}: rows lie too far apart for this kernel "
            "(or its values too close together, or too small); use precision='auto' or 'float64'."
        )
    return "float32" if asked == "float32" or error <= FLOAT32_ERROR else "float64"


def kind_of_map(settings: Settings, gram: str, kernel: Kernel, n_columns: int) -> str:
    """Which feature map holds K. ``gram="auto"`` takes features only if they are exact, so the rank does not matter."""
    return map_kind(gram, kernel, n_columns, "auto" if settings.gram == "auto" else settings.rank)


# Rows and kernel


def find_vertices(settings: Settings, source: RowSource) -> Vertices:
    """Distinct rows with multiplicities; on a device all rows; for a given matrix the rows that count."""
    X, weights = source.held, source.weights
    if source.device is not None:
        return Vertices.of_rows(source.placed(), weights)
    if not settings.kernel.given:
        return distinct_rows(X, weights)
    if settings.kernel.neighbors:
        if (weights == 0).any():
            raise DataError(
                "affinity='precomputed_nearest_neighbors' takes no sample_weight of 0, because rows of weight 0 "
                "are in the lists of others: leave those rows and columns out of the graph."
            )
        # Distances need not be symmetric, so every row is a vertex; equal ones get what the first one gets.
        known, first, inverse = np.unique(digests(with_zeros(X)), return_index=True, return_inverse=True)
        everyone = np.arange(X.shape[0])
        return Vertices(X, weights, first[inverse], known, everyone, given=True, places=first)
    return distinct_given(X, weights)


def choose_kernel(
    settings: Settings, vertices: Vertices, random: np.random.RandomState, columns: Columns | None
) -> tuple[Kernel | None, float | None]:
    """The kernel and its γ, a number that was asked for or that of a rule; neither for graphs and given matrices."""
    asked = settings.kernel
    if not asked.of_rows:
        return None, None
    gamma: float | None = None
    if needs_gamma(asked.affinity):
        if isinstance(asked.gamma, str):
            gamma = bandwidth(asked.gamma, asked.kernel(None, columns), vertices.data, vertices.weights, random)
        else:
            gamma = float(asked.gamma)
    kernel = asked.kernel(gamma, columns)
    if not isinstance(asked.affinity, str):
        _check_own_kernel(kernel, vertices)
        return kernel, gamma
    return precise_kernel(kernel, vertices.data), gamma


def _check_own_kernel(kernel: Kernel, vertices: Vertices) -> None:
    """A user's kernel must be symmetric and return one finite number a pair: seen on a few rows."""
    rows = vertices.data[:32]
    # Two arrays: scikit-learn asks a function for half of the pairs only when it is given one twice.
    block = np.asarray(kernel.block(rows, rows.copy()), dtype=float)
    if block.shape != (rows.shape[0],) * 2 or not np.isfinite(block).all():
        raise DataError(
            f"affinity must give a finite number for every pair of rows, got {block.shape} for {len(rows)}."
        )
    gap = np.abs(block - block.T)
    if gap.max() > 1e-6 * np.abs(block).max():
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        a, b = vertices.numbers[i], vertices.numbers[j]
        raise DataError(
            f"affinity must be symmetric, but rows {a} and {b} give {block[i, j]:.3g} one way and {block[j, i]:.3g} "
            "the other: use (f(x, y) + f(y, x)) / 2."
        )


# The order of rows, for starts

MOST_ORDERED = 2**25
"""Stored entries of the largest table whose rows are put in an order: it takes two copies of them."""


def starting_order(settings: Settings, rows: Rows) -> IntArray | None:
    """The order that starts of k-means follow: units, signs and the order of columns do not change it."""
    if rows.size > MOST_ORDERED:
        return None
    return canonical_order(normalize(rows) if settings.kernel.by_angle else rows)


# The order of the hypergraph

Cut = TypeVar("Cut")


def cut_and_label(
    settings: Settings,
    orders: Sequence[float],
    weights: FloatArray,
    cut: Callable[[float, Cut | None], Cut],
    label: Callable[[Cut], Assignment],
) -> tuple[Cut, Assignment | None, float, str]:
    """The cut at the only order; of several, at the least one whose k clusters all have √(n/k) of n rows.

    If there is none, the one whose smallest cluster is largest is taken. Also clusters, if any are wanted, and why.
    ``cut`` may start from what the order before found.
    """
    wanted, k, n = settings.n_clusters is not None, settings.n_groups, len(weights)
    if len(orders) == 1:
        reason = "neighbourhoods are cut at order 2" if settings.kernel.neighborhoods else "the only one"
        found = cut(orders[0], None)
        reason = reason if isinstance(settings.order, str) else "as asked for"
        return found, label(found) if wanted else None, orders[0], reason
    best: tuple[float, float, Cut, Assignment] | None = None
    last: Cut | None = None
    reasons, error, needed = [], None, 1 / np.sqrt(n * k)
    for order in orders:
        try:
            last = cut(order, last)
            assignment = label(last)
        except DegreeError as refused:
            error = refused
            reasons.append(f"order {order:g}: degrees that are not positive")
            continue
        smallest = float((np.bincount(assignment.labels, weights, k)[:k] / weights.sum()).min())
        reasons.append(f"order {order:g}: smallest cluster {n * smallest:.4g} of {n} rows ({n * needed:.1f} needed)")
        if best is None or smallest > best[0]:
            best = smallest, order, last, assignment
        if smallest >= needed:
            break
    if best is None:
        raise DegreeError(f"no order from {orders[0]:g} to {orders[-1]:g} can be taken: {error}") from error
    _, order, found, assignment = best
    return found, assignment if wanted else None, order, "; ".join(reasons)


# What is refused


def check_memory(settings: Settings, gram: str, X: Rows, n: int, dtype: np.dtype[Any]) -> None:
    """Refuse a K of n rows, with the vectors of the solver, that does not fit the free memory, before it is made."""
    k = min(settings.n_columns, n) - 1
    vectors = 0
    if k > 0:
        vectors = direct_bytes(n) if solves_directly(n, k) else basis_bytes(n, k)
    needed, way_out = 0, "ask for fewer clusters, or fit a sample of the rows and predict the rest."
    if gram == "dense" and not settings.kernel.given:
        needed, way_out = dense_bytes(n), "use gram='tiled', which is exact and never stores the matrix."
    elif gram == "tiled":
        needed = tiled_bytes(n, X.shape[1], block_columns(k, n), dtype)
    elif gram == "neighbors":
        d, neighbors = int(X.shape[1]), settings.n_neighbors or GRAPH_NEIGHBORS
        by_pairs = not (sparse.issparse(X) or uses_tree(n, d))
        search = search_bytes(n, d, settings.n_jobs) if by_pairs else 0
        needed = max(search, BYTES_PER_NEIGHBOR * n * neighbors)
        way_out = "lower n_neighbors, or use affinity='neighborhoods'."
    elif gram in FACTORED:
        rank = min(RANK, n) if isinstance(settings.rank, str) else settings.rank
        needed, way_out = 8 * rank * (3 * rank + X.shape[1]), "lower rank."
    require_memory(
        needed + vectors, f"gram={gram!r} for {n} rows and {settings.n_columns} columns of the embedding", way_out
    )


def pointwise_assigners() -> str:
    """The assigners that need the embedding alone, for messages."""
    return " or ".join(repr(name) for name, assigner in ASSIGNERS.items() if not assigner.needs_cut)


def check_source(settings: Settings, source: RowSource) -> None:
    """Refuse what cannot be done with rows that are not in memory, on the host, or on a device."""
    if source.device is not None:
        _check_device(settings, source, source.held, source.device)
    elif settings.precision == "fast":
        raise ParameterError("precision='fast' is for device='cuda': use precision='auto' or 'float32' on the host.")
    elif not source.in_memory:
        _check_lazy(settings)


def _check_lazy(settings: Settings) -> None:
    kernel, gram = settings.kernel, settings.gram
    for wrong, what, instead in (
        (settings.rank == "all", "rank='all'", "rank='auto'"),
        (kernel.given or kernel.neighbors, f"affinity={kernel.affinity!r}", "affinity='neighborhoods'"),
        (gram != "auto" and not settings.factored, f"gram={gram!r}", "gram='nystroem'"),
        (settings.symmetric, "modelling='symmetric'", "modelling='biclique'"),
        (settings.needs_cut, f"assign_labels={settings.assign_labels!r}", f"assign_labels={pointwise_assigners()}"),
    ):
        if wrong:
            raise ParameterError(f"{what} needs X in memory: load the rows, or use {instead}.")


def _check_device(settings: Settings, source: RowSource, X: Rows, device: Device) -> None:
    kernel, gram, name = settings.kernel, settings.gram, f"device={str(device)!r}"
    way_out = "leave device at None" if on_host(X) else "pass X.cpu().numpy() and leave device at None"
    if not settings.pointwise or kernel.given or kernel.neighbors:
        raise ParameterError(
            f"{name} works with a kernel by name, modelling='biclique' and assign_labels={pointwise_assigners()}: "
            f"{way_out} for the rest."
        )
    if gram in GRAMS and gram != "tiled":
        raise ParameterError(
            f"gram={gram!r} works on the host, and {name} computes its tiles: leave gram at 'auto', or {way_out}."
        )
    if kernel.neighborhoods and kernel.takes_gaps:
        raise ParameterError("the metric 'gower' works on the host: leave device at None.")
    if sparse.issparse(X):
        raise DataError("device= needs dense rows: pass X.toarray(), or leave device at None.")
    if kernel.neighborhoods:
        return
    check_device_precision(settings.precision, device)
    if settings.factored:
        check_map_on_device(settings, gram, kernel.kernel(), X.shape[1])
        return
    check_device_kernel(kernel.kernel())
    if source.n_counted != source.n_rows:
        raise ParameterError("sample_weight of 0 works without device=: leave those rows out, and predict them.")


def check_map_on_device(settings: Settings, gram: str, kernel: Kernel, n_columns: int) -> None:
    """Refuse a feature map that only the host computes: called with the bare kernel, and once it is chosen."""
    if gram == "nystroem" and not (kernel.inner_product and has_tiles(kernel)):
        exact = "gram='auto' (exact), or " if has_tiles(kernel) else ""
        raise ParameterError(
            "landmarks on a device are for kernels of an inner product (rbf, polynomial, linear, cosine), not for "
            f"{kernel.name!r}: use {exact}the host (device=None, X as an array)."
        )
    kind = kind_of_map(settings, gram, kernel, n_columns)
    if FEATURE_MAPS[kind].takes_tensors:
        return
    if kind == gram:
        raise ParameterError(
            f"gram={gram!r} is not supported on a device: use gram='nystroem', or the host (device=None)."
        )
    columns = exact_columns(kernel, n_columns)
    exact = "rank='auto' (all of them, exact), " if columns is not None and columns <= MOST_EXACT_COLUMNS else ""
    raise ParameterError(
        f"gram='features' of {columns} monomials ({kernel.name}, {n_columns} columns) with rank={settings.rank!r} "
        f"is a sketch, which is not supported on a device: use {exact}gram='nystroem', or the host (device=None)."
    )
