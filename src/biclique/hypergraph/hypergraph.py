"""Given hyperedges: the class, on a sparse incidence matrix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from biclique._typing import FloatArray, IntArray
from biclique.exceptions import DataError, ParameterError
from biclique.hypergraph.build import (
    checked_counts,
    checked_names,
    checked_weights,
    encode,
    flatten,
    frozen,
    number_array,
    view,
)
from biclique.multiway import is_symmetric


class Hypergraph:
    """Vertices, hyperedges with weights, and how often each vertex is in each edge; immutable.

    Stored as one sparse matrix of multiplicities, edges by vertices, so memory is proportional to the incidences.
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

    __slots__ = ("_edge_names", "_incidence", "_members", "_vertex_names", "_weights")

    def __init__(self, members: Any, weights: Any = None, vertex_names: Any = None, edge_names: Any = None) -> None:
        matrix = checked_counts(members)
        n_edges, n_vertices = matrix.shape
        self._members = matrix
        self._weights = checked_weights(weights, n_edges)
        self._vertex_names = checked_names(vertex_names, n_vertices, "vertex")
        self._edge_names = checked_names(edge_names, n_edges, "edge")
        self._incidence: Any = None

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
        sizes, flat = flatten(edges)
        codes, names = encode(flat, vertices, sizes)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        members = sparse.csr_array((np.ones(len(codes)), codes, indptr), shape=(len(sizes), len(names)))
        return cls(members, weights, names, edge_names)

    @classmethod
    def from_dict(
        cls,
        edges: Mapping[Hashable, Iterable[Hashable]],
        weights: Mapping[Hashable, float] | Sequence[float] | None = None,
        *,
        vertices: Iterable[Hashable] | int | None = None,
    ) -> Hypergraph:
        """From edge names and their vertices; weights by name (1 if absent) or in order."""
        if not isinstance(edges, Mapping):
            raise DataError(f"edges must be a mapping of names to vertices, got a {type(edges).__name__}.")
        names = list(edges)
        if weights is not None and hasattr(weights, "to_dict"):  # a pandas series: by name, not by place
            weights = dict(weights.to_dict())
        if isinstance(weights, Mapping):
            unknown = [name for name in weights if name not in edges]
            if unknown:
                raise DataError(f"weights has {unknown[0]!r}, which is not an edge.")
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
        if hasattr(incidence, "columns") and hasattr(incidence, "to_numpy"):  # a data frame; polars' have no index
            index = list(incidence.index) if hasattr(incidence, "index") else None
            vertex_names = index if vertex_names is None else vertex_names
            edge_names = list(incidence.columns) if edge_names is None else edge_names
            incidence = incidence.to_numpy()
        if not sparse.issparse(incidence):
            incidence = number_array(incidence, "the incidence matrix", 2)
        return cls(incidence.T, weights, vertex_names, edge_names)

    @classmethod
    def from_tensor(cls, tensor: FloatArray, *, vertex_names: Sequence[Hashable] | None = None) -> Hypergraph:
        """From a symmetric m-way tensor: every entry that is not zero is an edge of m vertices with that weight.

        Indices that repeat are vertices that repeat. The m! (or fewer) equal entries of one edge are one edge.
        """
        try:
            tensor = np.asarray(tensor, dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"the tensor must hold numbers: {error}.") from error
        if not np.isfinite(tensor).all():
            raise DataError("the tensor must be finite.")
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
        return view(self._members)

    @property
    def incidence(self) -> Any:
        """H, shape (n_vertices, n_edges), compressed by vertices; made when first asked for."""
        if self._incidence is None:
            self._incidence = frozen(self._members.T.tocsr())
        return view(self._incidence)

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
        """m if every edge has m vertices, else None."""
        sizes = self.edge_sizes
        same = len(sizes) > 0 and bool((sizes == sizes[0]).all()) and float(sizes[0]).is_integer()
        return int(sizes[0]) if same else None

    @property
    def has_repeats(self) -> bool:
        """Whether a multiplicity is above 1."""
        return bool((self._members.data > 1).any())

    @property
    def has_whole_counts(self) -> bool:
        """Whether every multiplicity is a whole number."""
        return bool((self._members.data == np.floor(self._members.data)).all())

    def edge(self, name: Hashable) -> list[Hashable]:
        """The vertices of an edge, by its name, in the order of ``vertex_names``; repeated as often as they count."""
        names = self._edge_names.tolist()
        if name not in names:
            raise ParameterError(f"there is no edge {name!r}.")
        return next(Hypergraph(self._members[[names.index(name)]], None, self._vertex_names, [name]).edges())

    def edges(self) -> Iterator[list[Hashable]]:
        """The vertices of every edge, one after the other."""
        members = self._members
        shares = np.flatnonzero(members.data != np.floor(members.data))
        if len(shares):
            edge = int(np.searchsorted(members.indptr, shares[0], side="right")) - 1
            raise DataError(
                f"edge {self._edge_names.item(edge)!r} holds shares of vertices ({members.data[shares[0]]:g}), which "
                "no list can show: use incidence."
            )
        counts = members.data.astype(int)
        names = self._vertex_names[np.repeat(members.indices, counts)].tolist()
        ends = np.concatenate([[0], np.cumsum(counts)])[members.indptr]
        return (names[start:end] for start, end in pairwise(ends.tolist()))

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
        if m > 32 or n**m > 10**7:
            raise ParameterError(f"a tensor of {n}^{m} entries is too large; the expansions need none.")
        tensor = np.zeros((n,) * m)
        numbered: Any = Hypergraph(self._members, self._weights)
        for weight, edge in zip(self._weights, numbered.edges(), strict=True):
            tensor[tuple(edge)] += weight  # in ascending order
        places = np.indices(tensor.shape, dtype=np.int32, sparse=True)
        for _ in range(m):  # bubble sort: every entry becomes that of its index in ascending order
            for i in range(m - 1):
                tensor = np.where(places[i] > places[i + 1], tensor.swapaxes(i, i + 1), tensor)
        return tensor

    # Others made from it

    def renamed(self, *, vertex_names: Any = None, edge_names: Any = None) -> Hypergraph:
        """The same with other names."""
        vertices = self._vertex_names if vertex_names is None else vertex_names
        edges = self._edge_names if edge_names is None else edge_names
        return Hypergraph(self._members, self._weights, vertices, edges)

    def with_weights(self, weights: Any) -> Hypergraph:
        """The same with other edge weights."""
        return Hypergraph(self._members, weights, self._vertex_names, self._edge_names)

    def restricted(self, vertices: Any) -> Hypergraph:
        """On some vertices (numbers or a mask): edges lose the others, and vanish when nothing is left of them."""
        chosen = np.asarray(vertices)
        chosen = chosen.astype(int) if not chosen.size else chosen
        try:
            kept = np.arange(self.n_vertices)[chosen]
        except IndexError as error:
            raise ParameterError(
                f"vertices must be numbers below {self.n_vertices}, or a mask of that length: {error}."
            ) from error
        if kept.ndim != 1 or len(np.unique(kept)) != len(kept):
            raise ParameterError("vertices must be distinct numbers, or a mask.")
        members = self._members[:, kept]
        filled = np.flatnonzero(np.diff(members.indptr))
        return Hypergraph(members[filled], self._weights[filled], self._vertex_names[kept], self._edge_names[filled])

    def components(self) -> IntArray:
        """The connected component of every vertex, the largest first; edges of weight zero connect nothing."""
        members = self._members[np.flatnonzero(self._weights)]
        both = sparse.block_array([[None, members.T], [members, None]])  # vertices and edges, one beside the other
        labels = connected_components(both.tocsr(), directed=False)[1][: self.n_vertices]
        sizes = np.bincount(labels, minlength=1)
        return np.asarray(np.argsort(np.argsort(-sizes, kind="stable"))[labels])

    def keeping_edges(self, vertices: IntArray) -> Hypergraph:
        """The hypergraph on some vertices, by their numbers, with every edge in its place, be it empty."""
        return Hypergraph(self._members[:, vertices], self._weights)

    def largest_component(self) -> Hypergraph:
        """The hypergraph on its largest connected component."""
        return self.restricted(self.components() == 0)

    def isolated(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which vertices are in no edge of a weight other than zero, shape (n_vertices,)."""
        return np.asarray((np.abs(self._weights) @ self._members) == 0)

    # Python's own

    def __repr__(self) -> str:
        sizes = self.edge_sizes
        ends = sorted({sizes.min(), sizes.max()}) if len(sizes) else []
        size = f" of size {' to '.join(f'{end:g}' for end in ends)}" if ends else ""
        return f"Hypergraph({self.n_vertices} vertices, {self.n_edges} edges{size}, {self.n_incidences} incidences)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hypergraph):
            return NotImplemented
        matrices = self._members, other._members
        arrays = [(matrix.indptr, matrix.indices, matrix.data) for matrix in matrices]
        names = [(h._vertex_names.tolist(), h._edge_names.tolist()) for h in (self, other)]
        return (
            all(map(np.array_equal, *arrays)) and np.array_equal(self._weights, other._weights) and names[0] == names[1]
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return (Hypergraph, (self._members, self._weights, self._vertex_names, self._edge_names))
