"""From what users have to arrays: vertices and edges numbered, checked, frozen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import suppress
from itertools import chain, count
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError

LARGEST_NAME = np.iinfo(np.int64).max


def frozen(matrix: Any) -> Any:
    """A compressed sparse row matrix whose arrays cannot be written."""
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def view(matrix: Any) -> Any:
    """Another matrix on the same read-only arrays: changes of it do not reach the original."""
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=False)


def checked_counts(members: Any) -> Any:
    """Multiplicities as a matrix of our own: checked, canonical and frozen."""
    if not sparse.issparse(members):
        members = number_array(members, "the incidence matrix", 2)
    elif members.dtype.kind not in "biuf":
        raise DataError(f"the incidence matrix must hold real numbers, got {members.dtype}.")
    matrix = sparse.csr_array(members, dtype=np.float64, copy=True)
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


def number_array(values: Any, what: str, dimensions: int) -> FloatArray:
    """A new array of real numbers, or an error that says what came."""
    if isinstance(values, np.ma.MaskedArray):
        raise DataError(
            f"{what} is a masked array, and what is masked has no number: numpy.ma.filled(array, 0) fills it."
        )
    try:
        found = np.asarray(values)
        numbers = found if found.dtype.kind in "cMm" else found.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} must be numbers, in rows of one length: {error}.") from error
    if found.dtype.kind in "cMm":
        kind = "complex ones: pass their real part" if found.dtype.kind == "c" else f"dates or times ({found.dtype})"
        raise DataError(f"{what} must be real numbers, got {kind}.")
    if found.ndim != dimensions:
        words = {1: "one dimension", 2: "two dimensions"}[dimensions]
        raise DataError(f"{what} must have {words}, got shape {found.shape}.")
    return numbers


def checked_weights(weights: Any, n_edges: int) -> FloatArray:
    """Edge weights: finite numbers, one an edge."""
    found = np.ones(n_edges) if weights is None else number_array(weights, "weights", 1)
    if found.shape != (n_edges,):
        raise DataError(f"weights must have one entry for each edge, {n_edges}, got shape {found.shape}.")
    bad = np.flatnonzero(~np.isfinite(found))
    if len(bad):
        raise DataError(f"weights must be finite: edge {bad[0]} has {found[bad[0]]}.")
    found.flags.writeable = False
    return found


def checked_names(names: Any, n_names: int, what: str) -> np.ndarray[Any, Any]:
    """Names as an array of integers, or of objects; distinct, none missing."""
    found = np.arange(n_names) if names is None else _name_array(names, what)
    if len(found) != n_names:
        raise DataError(f"{what}_names must have {n_names} entries, got {len(found)}.")
    if names is not None:
        distinct = _count_distinct(found, what)
        if distinct != n_names:
            raise DataError(f"{what}_names must be distinct; {n_names - distinct} are repeated.")
    found.flags.writeable = False
    return found


def _name_array(names: Any, what: str) -> np.ndarray[Any, Any]:
    try:
        listed = names.tolist() if hasattr(names, "tolist") else list(names)
    except TypeError as error:
        raise DataError(f"{what}_names must be a sequence of names, got {names!r}.") from error
    integers = _integers(names if isinstance(names, np.ndarray) else listed)
    if integers is not None and len(integers):
        return integers.copy()
    found = np.empty(len(listed), dtype=object)
    found[:] = listed
    return found


def _integers(names: Any) -> IntArray | None:
    """Names as int64 if all of them are integers that fit, else None."""
    if isinstance(names, np.ndarray):
        fits = names.ndim == 1 and names.dtype.kind in "iu" and int(names.max(initial=0)) <= LARGEST_NAME
        return names.astype(np.int64, copy=False) if fits else None
    if set(map(type, names)) <= {int}:
        with suppress(OverflowError):
            return np.array(names, dtype=np.int64)
    return None


def _count_distinct(names: np.ndarray[Any, Any], what: str) -> int:
    if names.dtype != object:
        return int(np.count_nonzero(np.diff(np.sort(names)))) + bool(len(names))
    listed = names.tolist()
    try:
        distinct = len(set(listed))
    except TypeError as error:
        raise DataError(f"{what}_names must be hashable: {error}.") from error
    if any(missing(name) for name in listed):
        raise DataError(f"one of {what}_names is missing (None or NaN): give it a name.")
    return distinct


def missing(name: Any) -> bool:
    """None, NaN, or pandas' missing value."""
    if name is None:
        return True
    try:
        return bool(name != name)
    except (TypeError, ValueError):  # pandas.NA says neither yes nor no
        return type(name).__name__ in ("NAType", "NaTType")


def flatten(edges: Any) -> tuple[IntArray, Any]:
    """The size of every edge, and all vertices one after the other: an integer array, or a list of names."""
    if hasattr(edges, "columns"):
        raise DataError("edges must be a collection of collections, got a data frame: use from_incidence.")
    flat: Any
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.dtype.kind in "iu":
        sizes, flat = np.full(edges.shape[0], edges.shape[1]), edges.ravel()
    else:
        listed = [edge if hasattr(edge, "__len__") else list(edge) for edge in _each(edges)]
        sizes = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
        flat = list(chain.from_iterable(listed))
        if any(issubclass(kind, np.generic) for kind in set(map(type, flat))):
            flat = list(map(plain, flat))
    integers = _integers(flat)
    if integers is None and isinstance(flat, np.ndarray):
        raise DataError("integer vertices must be below 2**63: pass them as text.")
    return sizes, flat if integers is None else integers


def plain(vertex: Any) -> Any:
    """A name without NumPy's type around it."""
    return vertex.item() if isinstance(vertex, np.generic) else vertex


def _each(edges: Any) -> Iterator[Any]:
    """The edges, with an error that says which one is not a collection."""
    try:
        iterator = iter(edges)
    except TypeError as error:
        raise DataError(
            f"edges must be a collection of collections of vertices, got a {type(edges).__name__}."
        ) from error
    for number, edge in enumerate(iterator):
        if not hasattr(edge, "__iter__") or getattr(edge, "ndim", 1) == 0:
            raise DataError(f"edge {number} is {edge!r}, not a collection of vertices: write [{edge!r}].")
        if isinstance(edge, (str, bytes)):
            raise DataError(f"edge {number} is the text {edge!r}, not a collection of vertices: write [{edge!r}].")
        yield edge


def encode(flat: Any, vertices: Any, sizes: IntArray) -> tuple[IntArray, Any]:
    """The number of every vertex in ``flat``, and the names by number."""
    known = _known(vertices)
    if isinstance(flat, np.ndarray):
        if known is None:
            distinct, codes = np.unique(flat, return_inverse=True)
            return codes, distinct
        if isinstance(known, np.ndarray):
            order = np.argsort(known, kind="stable")
            place = np.searchsorted(known[order], flat).clip(max=len(known) - 1)
            codes = order[place] if len(known) else np.zeros(len(flat), dtype=int)
            outside = np.flatnonzero(known[codes] != flat) if len(known) else np.arange(len(flat))
            if len(outside):
                _unknown_vertex(int(flat[outside[0]]), int(outside[0]), sizes, len(known))
            return codes, known
        flat = flat.tolist()
    index: dict[Hashable, int] = defaultdict(count().__next__)  # a name seen for the first time gets the next number
    try:
        if known is not None:
            listed = known.tolist() if isinstance(known, np.ndarray) else known
            index = {name: number for number, name in enumerate(dict.fromkeys(listed))}
        codes = np.fromiter(map(index.__getitem__, flat), dtype=np.int64, count=len(flat))
    except KeyError as error:
        where = next(i for i, name in enumerate(flat) if name not in index)
        _unknown_vertex(error.args[0], where, sizes, len(index))
    except TypeError as error:
        raise DataError(f"vertices must be hashable, such as numbers, text or tuples: {error}.") from error
    names: list[Any] = list(index)
    if any(missing(name) for name in names):
        raise DataError("a vertex is missing (None or NaN): leave it out of its edge, or give it a name.")
    if known is None and all(isinstance(name, int) for name in names):
        return reordered(codes, names, sorted(range(len(names)), key=names.__getitem__))
    return codes, names


def reordered(codes: IntArray, names: list[Any], order: list[int]) -> tuple[IntArray, list[Any]]:
    """Names in another order, and their numbers in it; −1 stays −1."""
    place = np.full(len(order) + 1, -1)  # the last one for the code −1
    place[order] = np.arange(len(order))
    return place[codes], [names[i] for i in order]


def _known(vertices: Any) -> Any:
    """All vertices as given: None, an array of integers, or a list of names."""
    if vertices is None:
        return None
    if isinstance(vertices, (int, np.integer)) and not isinstance(vertices, bool):
        if vertices < 0:
            raise DataError(f"vertices must be a number from 0, or all names, got {vertices}.")
        return np.arange(int(vertices))
    try:
        listed = vertices if isinstance(vertices, np.ndarray) else list(dict.fromkeys(vertices))
    except TypeError as error:
        raise DataError(f"vertices must be a number from 0, or all names, got {vertices!r}.") from error
    integers = _integers(listed)
    return list(listed) if integers is None else integers


def _unknown_vertex(name: Hashable, place: int, sizes: IntArray, n_vertices: int) -> NoReturn:
    edge = int(np.searchsorted(np.cumsum(sizes), place, side="right"))
    raise DataError(f"edge {edge} holds {name!r}, which is not among the {n_vertices} vertices given.")
