"""From what users have to arrays: vertices and edges numbered, checked, frozen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError


def frozen(matrix: Any) -> Any:
    """A compressed sparse row matrix whose arrays cannot be written."""
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def checked_counts(members: Any) -> Any:
    """Multiplicities, checked, canonical and frozen."""
    try:
        matrix = sparse.csr_array(members, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the incidence matrix must hold numbers: {error}.") from error
    if matrix is members or (matrix.nnz and np.shares_memory(matrix.data, getattr(members, "data", np.empty(0)))):
        if not matrix.data.flags.writeable and matrix.has_canonical_format:
            return matrix  # another hypergraph's
        matrix = matrix.copy()
    matrix.sum_duplicates()
    bad = ~np.isfinite(matrix.data) | (matrix.data < 0)
    if bad.any():
        where = int(np.flatnonzero(bad)[0])
        edge = int(np.searchsorted(matrix.indptr, where, side="right")) - 1
        raise DataError(
            f"multiplicities must be finite and not negative: vertex {int(matrix.indices[where])} is "
            f"{matrix.data[where]:g} times in edge {edge}."
        )
    if matrix.nnz and matrix.data.min() == 0:
        matrix.eliminate_zeros()
    return frozen(matrix)


def checked_weights(weights: Any, n_edges: int) -> FloatArray:
    if weights is None:
        found = np.ones(n_edges)
    else:
        try:
            found = np.array(weights, dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"weights must be numbers, one an edge: {error}.") from error
        if found.shape != (n_edges,):
            raise DataError(f"weights must have one entry an edge, {n_edges}, got shape {found.shape}.")
        bad = np.flatnonzero(~np.isfinite(found))
        if len(bad):
            raise DataError(f"weights must be finite: edge {bad[0]} has {found[bad[0]]}.")
    found.flags.writeable = False
    return found


def checked_names(names: Sequence[Hashable] | None, n_names: int, what: str) -> np.ndarray[Any, Any]:
    """Names as an array of integers, or of objects."""
    if names is None:
        found: np.ndarray[Any, Any] = np.arange(n_names)
        found.flags.writeable = False
        return found
    if isinstance(names, np.ndarray) and names.dtype.kind in "iu" and names.ndim == 1:
        found = names.astype(np.int64)
    else:
        listed: list[Any] = names.tolist() if isinstance(names, np.ndarray) else list(names)
        if listed and set(map(type, listed)) == {int} and all(-(2**63) <= name < 2**63 for name in listed):
            found = np.array(listed, dtype=np.int64)
        else:
            found = np.empty(len(listed), dtype=object)
            found[:] = listed
    if len(found) != n_names:
        raise DataError(f"{what}_names must have {n_names} entries, got {len(found)}.")
    distinct = len(np.unique(found)) if found.dtype != object else _count_distinct(found, what)
    if distinct != n_names:
        raise DataError(f"{what}_names must be distinct; {n_names - distinct} are repeated.")
    found.flags.writeable = False
    return found


def _count_distinct(names: np.ndarray[Any, Any], what: str) -> int:
    try:
        return len(set(names.tolist()))
    except TypeError as error:
        raise DataError(f"{what}_names must be hashable: {error}.") from error


def flatten(edges: Any) -> tuple[IntArray, Any]:
    """The size of every edge, and its vertices: one integer array for all, or a list of collections."""
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.dtype.kind in "iu":
        return np.full(edges.shape[0], edges.shape[1], dtype=np.int64), edges.ravel()
    listed = [edge if hasattr(edge, "__len__") else list(edge) for edge in _each(edges)]
    for number, edge in enumerate(listed):
        if isinstance(edge, (str, bytes)):
            raise DataError(f"edge {number} is the text {edge!r}, not a collection of vertices: write [{edge!r}].")
    sizes = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    types = set(map(type, chain.from_iterable(listed)))
    if types <= {int}:
        try:
            return sizes, np.fromiter(chain.from_iterable(listed), dtype=np.int64, count=int(sizes.sum()))
        except OverflowError:
            pass
    if any(issubclass(kind, np.generic) for kind in types):
        listed = [[v.item() if isinstance(v, np.generic) else v for v in edge] for edge in listed]
    return sizes, listed


def _each(edges: Any) -> Iterator[Any]:
    """The edges, with an error that says which one is no collection."""
    try:
        iterator = iter(edges)
    except TypeError as error:
        raise DataError(
            f"edges must be a collection of collections of vertices, got a {type(edges).__name__}."
        ) from error
    for number, edge in enumerate(iterator):
        if not hasattr(edge, "__iter__"):
            raise DataError(f"edge {number} is {edge!r}, not a collection of vertices: write [{edge!r}].")
        yield edge


def encode(flat: Any, vertices: Any, sizes: IntArray) -> tuple[IntArray, Any]:
    """The number of every vertex in ``flat``, and the names by number."""
    if isinstance(vertices, (int, np.integer)) and not isinstance(vertices, bool):
        vertices = range(int(vertices))
    if isinstance(flat, np.ndarray):
        if vertices is None:
            return _encode_integers(flat)
        if isinstance(vertices, range) and vertices == range(len(vertices)):
            outside = np.flatnonzero((flat < 0) | (flat >= len(vertices)))
            if len(outside):
                _unknown_vertex(int(flat[outside[0]]), int(outside[0]), sizes, len(vertices))
            return flat.astype(np.int64), np.arange(len(vertices))
        flat = [flat.tolist()]
    index: dict[Hashable, int] = {}
    if vertices is None:
        index = defaultdict(count().__next__)  # a name seen for the first time gets the next number
    try:
        if vertices is not None:
            index = {name: number for number, name in enumerate(dict.fromkeys(vertices))}
        known = len(index)
        codes = np.fromiter(map(index.__getitem__, chain.from_iterable(flat)), dtype=np.int64, count=int(sizes.sum()))
    except KeyError as error:
        where = next(i for i, name in enumerate(chain.from_iterable(flat)) if name not in index)
        _unknown_vertex(error.args[0], where, sizes, known)
    except TypeError as error:
        raise DataError(f"vertices must be hashable, such as numbers, text or tuples: {error}.") from error
    names = list(index)
    if any(name is None or name != name for name in names):
        raise DataError("a vertex is missing (None or NaN): leave it out of its edge, or give it a name.")
    if vertices is None and all(isinstance(name, int) for name in names):
        order = sorted(range(len(names)), key=names.__getitem__)  # type: ignore[arg-type]
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        return number[codes], [names[i] for i in order]
    return codes, names


def _encode_integers(flat: IntArray) -> tuple[IntArray, IntArray]:
    """Whole numbers in their sorted order; without a sort where they are dense."""
    if not len(flat):
        return flat.astype(np.int64), np.empty(0, dtype=np.int64)
    if flat.dtype.kind == "u" and int(flat.max()) > np.iinfo(np.int64).max:
        raise DataError("integer vertices must be below 2**63: pass them as text.")
    flat = flat.astype(np.int64, copy=False)
    low, high = int(flat.min()), int(flat.max())
    if high - low < 4 * len(flat) + 1024:
        present = np.zeros(high - low + 1, dtype=bool)
        present[flat - low] = True
        number = np.cumsum(present) - 1
        return number[flat - low], np.flatnonzero(present) + low
    names, codes = np.unique(flat, return_inverse=True)
    return codes, names


def _unknown_vertex(name: Hashable, place: int, sizes: IntArray, n_vertices: int) -> None:
    edge = int(np.searchsorted(np.cumsum(sizes), place, side="right"))
    raise DataError(f"edge {edge} holds {name!r}, which is none of the {n_vertices} vertices given.")
