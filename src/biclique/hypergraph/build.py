"""From what users have to arrays: vertices and edges numbered, checked, frozen."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

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
    try:
        found = np.arange(n_names) if names is None else _name_array(names)
        distinct = len(set(found)) if found.dtype == object else len(np.unique(found))
    except TypeError as error:
        raise DataError(f"{what}_names must be a sequence of names that are hashable: {error}.") from error
    if len(found) != n_names:
        raise DataError(f"{what}_names must have {n_names} entries, got {len(found)}.")
    if distinct != n_names:
        raise DataError(f"{what}_names must be distinct; {n_names - distinct} are repeated.")
    if found.dtype == object and any(map(missing, found)):
        raise DataError(f"one of {what}_names is missing (None or NaN): give it a name.")
    found.flags.writeable = False
    return found


def _name_array(names: Any) -> np.ndarray[Any, Any]:
    listed = names if isinstance(names, np.ndarray) else list(names)
    integers = _integers(listed)
    if integers is not None:
        return integers.copy()
    found = np.empty(len(listed), dtype=object)
    found[:] = list(map(plain, listed))
    return found


def _integers(names: Any) -> IntArray | None:
    """Names as int64 if all of them are integers that fit, else None."""
    if isinstance(names, np.ndarray):
        fits = names.ndim == 1 and names.dtype.kind in "iu" and int(names.max(initial=0)) <= LARGEST_NAME
        return names.astype(np.int64, copy=False) if fits else None
    fits = set(map(type, names)) <= {int} and max(map(abs, names), default=0) <= LARGEST_NAME
    return np.array(names, dtype=np.int64) if fits else None


def plain(name: Any) -> Any:
    """A name without NumPy's type around it."""
    return name.item() if isinstance(name, np.generic) else name


def missing(name: Any) -> bool:
    """None, NaN, or pandas' missing value, which is neither equal nor unequal to itself."""
    return name is None or type(name).__name__ == "NAType" or bool(name != name)


def flatten(edges: Any) -> tuple[IntArray, Any]:
    """The size of every edge, and all vertices one after the other: an integer array, or a list of names."""
    if hasattr(edges, "columns"):
        raise DataError("edges must be a collection of collections, got a data frame: use from_incidence.")
    if not _is_collection(edges) or isinstance(edges, Mapping):
        raise DataError(f"edges must be a collection of collections of vertices, got a {type(edges).__name__}.")
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and _integers(edges.ravel()) is not None:
        return np.full(edges.shape[0], edges.shape[1]), _integers(edges.ravel())
    listed = []
    for number, edge in enumerate(edges):
        if not _is_collection(edge):
            kind = "the text " if isinstance(edge, (str, bytes)) else ""
            raise DataError(f"edge {number} is {kind}{edge!r}, not a collection of vertices: write [{edge!r}].")
        listed.append(list(map(plain, edge)))
    flat = list(chain.from_iterable(listed))
    integers = _integers(flat)
    return np.array([len(edge) for edge in listed], dtype=np.int64), flat if integers is None else integers


def _is_collection(value: Any) -> bool:
    return hasattr(value, "__iter__") and getattr(value, "ndim", 1) > 0 and not isinstance(value, (str, bytes))


def encode(flat: Any, vertices: Any, sizes: IntArray) -> tuple[IntArray, Any]:
    """The number of every vertex in ``flat``, and the names by number."""
    if vertices is None and isinstance(flat, np.ndarray):
        return np.unique(flat, return_inverse=True)[::-1]
    try:
        names = _distinct(flat if vertices is None else vertices)
        if vertices is None and all(isinstance(name, int) for name in names):
            names = sorted(names)
        codes = _places(flat, names)
    except TypeError as error:
        raise DataError(f"vertices must be hashable, such as numbers, text or tuples: {error}.") from error
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        edge = int(np.searchsorted(np.cumsum(sizes), unknown[0], side="right"))
        name = plain(flat[unknown[0]])
        raise DataError(f"edge {edge} holds {name!r}, which is not among the {len(names)} vertices given.")
    if not isinstance(names, np.ndarray) and any(map(missing, names)):
        raise DataError("a vertex is missing (None or NaN): leave it out of its edge, or give it a name.")
    return codes, names


def _distinct(vertices: Any) -> Any:
    """All vertices: numbers below n, or a list of names."""
    if isinstance(vertices, (int, np.integer)) and not isinstance(vertices, bool) and vertices >= 0:
        return np.arange(int(vertices))
    if not _is_collection(vertices):
        raise DataError(f"vertices must be a number from 0, or all names, got {vertices!r}.")
    return list(dict.fromkeys(map(plain, vertices)))


def _places(flat: Any, names: Any) -> IntArray:
    """The place of every vertex in ``names``, −1 for one that is not there; an array of names is 0, 1, …."""
    if isinstance(flat, np.ndarray) and isinstance(names, np.ndarray):
        return np.where((flat >= 0) & (flat < len(names)), flat, -1)
    index = {name: place for place, name in enumerate(names)}
    return np.array([index.get(plain(name), -1) for name in flat], dtype=np.int64)
