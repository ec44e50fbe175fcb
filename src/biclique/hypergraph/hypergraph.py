"""Given hyperedges: the class, on a sparse incidence matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations_with_replacement, count
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.multiway import is_symmetric

LARGEST_INDEX = np.iinfo(np.int32).max


class Hypergraph:
    """Vertices, hyperedges with weights, and how often each vertex is in each edge; immutable.

    Held as one sparse matrix of multiplicities, edges by vertices, so memory is proportional to the incidences.
    Edges may have any size, vertices may repeat inside an edge, edges may repeat. The usual ways in are
    ``from_edges``, ``from_dict``, ``from_incidence`` and ``from_tensor``.

    Parameters
    ----------
    members : sparse matrix of shape (n_edges, n_vertices)
        How often each vertex is in each edge: the transpose of the incidence matrix H.
    weights : array of shape (n_edges,), optional
        Of the edges, 1 by default.
    vertex_names, edge_names : sequence, optional
        Distinct; 0, 1, … by default.

    Examples
    --------
    >>> from biclique import Hypergraph
    >>> papers = Hypergraph.from_dict({"p1": ["ann", "bob", "cy"], "p2": ["cy", "dan"]}, weights={"p2": 2.0})
    >>> papers
    Hypergraph(4 vertices, 2 edges of size 2 to 3, 5 incidences)
    >>> papers.edge("p1")
    ['ann', 'bob', 'cy']
    >>> papers.degrees.tolist()
    [1.0, 1.0, 3.0, 2.0]
    """

    __slots__ = ("_edge_index", "_edge_names", "_incidence", "_members", "_vertex_names", "_weights")

    def __init__(
        self,
        members: Any,
        weights: Any = None,
        vertex_names: Sequence[Hashable] | None = None,
        edge_names: Sequence[Hashable] | None = None,
    ) -> None:
        matrix = _counts(members)
        n_edges, n_vertices = matrix.shape
        self._members = matrix
        self._weights = _edge_weights(weights, n_edges)
        self._vertex_names = _names(vertex_names, n_vertices, "vertex")
        self._edge_names = _names(edge_names, n_edges, "edge")
        self._incidence: Any = None
        self._edge_index: dict[Hashable, int] | None = None

    # Ways in

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Iterable[Hashable]] | IntArray,
        weights: Any = None,
        *,
        vertices: Iterable[Hashable] | int | None = None,
        edge_names: Sequence[Hashable] | None = None,
    ) -> Hypergraph:
        """From edges, each a collection of vertices; a vertex named twice counts twice.

        Parameters
        ----------
        edges : iterable of collections, or an integer array of shape (n_edges, size)
        weights : array of shape (n_edges,), optional
        vertices : iterable, or int, optional
            All vertices, in the order wanted, isolated ones included; a number n stands for 0, …, n − 1. By default
            those that occur: whole numbers sorted, other names in the order in which they are first seen.
        edge_names : sequence, optional
        """
        if isinstance(edges, (str, bytes, Mapping)):
            raise DataError(f"edges must be a collection of collections of vertices, got a {type(edges).__name__}.")
        sizes, flat = _flatten(edges)
        codes, names = _encode(flat, vertices, sizes)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        small = max(len(names), len(codes)) < LARGEST_INDEX
        index = np.int32 if small else np.int64
        counts = np.ones(len(codes))
        members = sparse.csr_array(
            (counts, codes.astype(index, copy=False), indptr.astype(index)), shape=(len(sizes), len(names))
        )
        return cls(members, weights, cast("Sequence[Hashable]", names), edge_names)

    @classmethod
    def from_dict(
        cls,
        edges: Mapping[Hashable, Iterable[Hashable]],
        weights: Mapping[Hashable, float] | Sequence[float] | None = None,
        *,
        vertices: Iterable[Hashable] | int | None = None,
    ) -> Hypergraph:
        """From edge names and their vertices; weights by name (1 where absent) or in order."""
        if not isinstance(edges, Mapping):
            raise DataError(f"edges must be a mapping of names to vertices, got a {type(edges).__name__}.")
        names = list(edges)
        if isinstance(weights, Mapping):
            unknown = [name for name in weights if name not in edges]
            if unknown:
                raise DataError(f"weights has {unknown[0]!r}, which is no edge.")
            weights = [weights.get(name, 1.0) for name in names]
        return cls.from_edges(list(edges.values()), weights, vertices=vertices, edge_names=names)

    @classmethod
    def from_incidence(
        cls,
        incidence: Any,
        weights: Any = None,
        *,
        vertex_names: Sequence[Hashable] | None = None,
        edge_names: Sequence[Hashable] | None = None,
    ) -> Hypergraph:
        """From the incidence matrix H, vertices by edges: dense, sparse or a data frame, whose labels become names.

        Entries are multiplicities, 0 or more. Numbers that are not whole are taken as shares of a vertex in an edge;
        only the star expansion has a meaning for these.
        """
        if hasattr(incidence, "iloc"):  # a pandas data frame
            vertex_names = list(incidence.index) if vertex_names is None else vertex_names
            edge_names = list(incidence.columns) if edge_names is None else edge_names
            incidence = incidence.to_numpy()
        if not sparse.issparse(incidence):
            incidence = np.asarray(incidence)
            if incidence.ndim != 2:
                raise DataError(f"the incidence matrix must have two dimensions, got shape {incidence.shape}.")
        return cls(incidence.T, weights, vertex_names, edge_names)

    @classmethod
    def from_tensor(cls, tensor: FloatArray, *, vertex_names: Sequence[Hashable] | None = None) -> Hypergraph:
        """From a symmetric m-way tensor: every entry that is not zero is an edge of m vertices with that weight.

        Indices that repeat are vertices that repeat. The m! (or fewer) equal entries of one edge are one edge.
        """
        tensor = np.asarray(tensor, dtype=float)
        if tensor.ndim < 2 or not is_symmetric(tensor):
            raise DataError(
                "the tensor must have two or more modes and stay when its indices are permuted; for a biclique tensor, "
                "which is only half-symmetric, use biclique_gram."
            )
        indices = np.argwhere(tensor)
        indices = indices[(np.diff(indices, axis=1) >= 0).all(axis=1)]
        hypergraph = cls.from_edges(indices, tensor[tuple(indices.T)], vertices=len(tensor))
        return hypergraph if vertex_names is None else hypergraph.renamed(vertex_names=vertex_names)

    # What it is

    @property
    def n_vertices(self) -> int:
        return int(self._members.shape[1])

    @property
    def n_edges(self) -> int:
        return int(self._members.shape[0])

    @property
    def n_incidences(self) -> int:
        """Pairs of a vertex and an edge it is in."""
        return int(self._members.nnz)

    @property
    def vertex_names(self) -> np.ndarray[Any, Any]:
        """Names in the order of the rows of H, shape (n_vertices,)."""
        return self._vertex_names

    @property
    def edge_names(self) -> np.ndarray[Any, Any]:
        """Names in the order of the columns of H, shape (n_edges,)."""
        return self._edge_names

    @property
    def weights(self) -> FloatArray:
        """w, shape (n_edges,)."""
        return self._weights

    @property
    def members(self) -> Any:
        """Hᵀ, shape (n_edges, n_vertices), compressed by edges."""
        return self._members

    @property
    def incidence(self) -> Any:
        """H, shape (n_vertices, n_edges), compressed by vertices; made when first asked for."""
        if self._incidence is None:
            self._incidence = _frozen(self._members.T.tocsr())
        return self._incidence

    @property
    def edge_sizes(self) -> FloatArray:
        """|e|, repeated vertices counted, shape (n_edges,)."""
        return np.asarray(self._members.sum(axis=1), dtype=float)

    @property
    def degrees(self) -> FloatArray:
        """d = H w, repeated vertices counted, shape (n_vertices,)."""
        return np.asarray(self._weights @ self._members, dtype=float)

    @property
    def uniform_order(self) -> int | None:
        """m where every edge has m vertices, else None."""
        sizes = self.edge_sizes
        same = len(sizes) > 0 and bool((sizes == sizes[0]).all()) and float(sizes[0]).is_integer()
        return int(sizes[0]) if same else None

    @property
    def has_repeats(self) -> bool:
        """Whether a vertex is in one edge more than once."""
        return bool((self._members.data > 1).any())

    @property
    def has_whole_counts(self) -> bool:
        """Whether every multiplicity is a whole number."""
        return bool((self._members.data == np.floor(self._members.data)).all())

    def edge(self, name: Hashable) -> list[Hashable]:
        """The vertices of an edge, by its name, in the order of ``vertex_names``; repeated as often as they count."""
        if self._edge_index is None:
            self._edge_index = {edge: number for number, edge in enumerate(self._edge_names.tolist())}
        if name not in self._edge_index:
            raise ParameterError(f"there is no edge {name!r}.")
        return self._vertices_of(self._edge_index[name])

    def edges(self) -> Iterator[list[Hashable]]:
        """The vertices of every edge, one after the other."""
        return (self._vertices_of(number) for number in range(self.n_edges))

    def _vertices_of(self, number: int) -> list[Hashable]:
        start, end = self._members.indptr[number : number + 2]
        counts = self._members.data[start:end]
        if (counts != np.floor(counts)).any():
            raise DataError(
                f"edge {self._edge_names.item(number)!r} holds shares of vertices ({counts.min():g}), which no list can "
                "show: use incidence."
            )
        return cast(
            "list[Hashable]",
            np.repeat(self._vertex_names[self._members.indices[start:end]], counts.astype(int)).tolist(),
        )

    def to_dict(self) -> dict[Hashable, list[Hashable]]:
        """Edge names and their vertices."""
        return dict(zip(self._edge_names.tolist(), self.edges(), strict=True))

    def to_tensor(self) -> FloatArray:
        """The symmetric tensor 𝒜 of a uniform hypergraph, for small ones: w(e) at every arrangement of e's vertices.

        Equal edges add their weights.
        """
        m, n = self.uniform_order, self.n_vertices
        if m is None or m < 2 or not self.has_whole_counts:
            raise DataError("a tensor needs edges of one size, 2 or more, with whole multiplicities.")
        if n**m > 10**7:
            raise ParameterError(f"a tensor of {n}^{m} entries is too large; the expansions need none.")
        tensor = np.zeros((n,) * m)
        by_set: dict[tuple[int, ...], float] = {}
        counts = self._members.data.astype(int)
        for e in range(self.n_edges):
            inside = slice(self._members.indptr[e], self._members.indptr[e + 1])
            key = tuple(np.repeat(self._members.indices[inside], counts[inside]).tolist())
            by_set[key] = by_set.get(key, 0.0) + float(self._weights[e])
        for index in combinations_with_replacement(range(n), m):
            if index in by_set:
                for arrangement in _arrangements(index):
                    tensor[arrangement] = by_set[index]
        return tensor

    # Others made from it

    def renamed(
        self, *, vertex_names: Sequence[Hashable] | None = None, edge_names: Sequence[Hashable] | None = None
    ) -> Hypergraph:
        """The same with other names."""
        vertices = self._vertex_names if vertex_names is None else vertex_names
        edges = self._edge_names if edge_names is None else edge_names
        return Hypergraph(
            self._members, self._weights, cast("Sequence[Hashable]", vertices), cast("Sequence[Hashable]", edges)
        )

    def with_weights(self, weights: Any) -> Hypergraph:
        """The same with other edge weights."""
        return Hypergraph(
            self._members,
            weights,
            cast("Sequence[Hashable]", self._vertex_names),
            cast("Sequence[Hashable]", self._edge_names),
        )

    def restricted(self, vertices: Any) -> Hypergraph:
        """On some vertices (numbers or a mask): edges lose the others, and vanish when nothing is left of them."""
        kept = np.arange(self.n_vertices)[np.asarray(vertices)]
        members = self._members[:, kept]
        filled = np.flatnonzero(np.diff(members.indptr))
        return Hypergraph(
            members[filled],
            self._weights[filled],
            cast("Sequence[Hashable]", self._vertex_names[kept]),
            cast("Sequence[Hashable]", self._edge_names[filled]),
        )

    def components(self) -> IntArray:
        """The connected part of every vertex, largest part first; edges of weight zero connect nothing."""
        members, n = self._members, self.n_vertices
        if (self._weights == 0).any():
            members = members[np.flatnonzero(self._weights)]
        # Each edge as a chain through its vertices: as connected as the clique, with fewer links.
        linked = np.ones(members.nnz + 1, dtype=bool)
        linked[members.indptr] = False
        after = np.flatnonzero(linked)
        links = (members.indices[after - 1], members.indices[after])
        chained = sparse.coo_array((np.ones(len(after), dtype=np.int8), links), shape=(n, n))
        labels = connected_components(chained.tocsr(), directed=False)[1]
        sizes = np.bincount(labels, minlength=1)
        rank = np.empty(len(sizes), dtype=np.intp)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
        return np.asarray(rank[labels])

    def largest_component(self) -> Hypergraph:
        """The hypergraph on its largest connected part."""
        return self.restricted(self.components() == 0)

    def isolated(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which vertices are in no edge of a weight other than zero, shape (n_vertices,)."""
        return np.asarray((np.abs(self._weights) @ self._members) == 0)

    # Python's own

    def __repr__(self) -> str:
        sizes = self.edge_sizes
        if not len(sizes):
            size = ""
        elif sizes.min() == sizes.max():
            size = f" of size {sizes.min():g}"
        else:
            size = f" of size {sizes.min():g} to {sizes.max():g}"
        return f"Hypergraph({self.n_vertices} vertices, {self.n_edges} edges{size}, {self.n_incidences} incidences)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hypergraph):
            return NotImplemented
        return (
            self._members.shape == other._members.shape
            and np.array_equal(self._members.indptr, other._members.indptr)
            and np.array_equal(self._members.indices, other._members.indices)
            and np.array_equal(self._members.data, other._members.data)
            and np.array_equal(self._weights, other._weights)
            and self._vertex_names.tolist() == other._vertex_names.tolist()
            and self._edge_names.tolist() == other._edge_names.tolist()
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return (Hypergraph, (self._members, self._weights, self._vertex_names, self._edge_names))


def _frozen(matrix: Any) -> Any:
    """A compressed sparse row matrix whose arrays cannot be written."""
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def _counts(members: Any) -> Any:
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
    return _frozen(matrix)


def _edge_weights(weights: Any, n_edges: int) -> FloatArray:
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


def _names(names: Sequence[Hashable] | None, n_names: int, what: str) -> np.ndarray[Any, Any]:
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


def _flatten(edges: Any) -> tuple[IntArray, Any]:
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


def _encode(flat: Any, vertices: Any, sizes: IntArray) -> tuple[IntArray, Any]:
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


def _arrangements(index: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every distinct order of an index with repeats."""
    if len(index) <= 1:
        yield index
        return
    for first in sorted(set(index)):
        rest = list(index)
        rest.remove(first)
        for tail in _arrangements(tuple(rest)):
            yield (first, *tail)
