"""Hypergraphs from and to matrices, XGI, HyperNetX and hypergraphx."""

import warnings
from collections.abc import Hashable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from biclique.exceptions import DataError, optional
from biclique.hypergraph.build import number_array, plain
from biclique.hypergraph.files.lines import from_memberships, memberships_of
from biclique.hypergraph.hypergraph import Hypergraph


def as_hypergraph(obj: Any) -> Hypergraph:
    """A Hypergraph from what is one: itself, an incidence matrix, or an object of XGI, HyperNetX or hypergraphx.

    The incidence matrix, vertices by edges, is an array, a sparse matrix or a pandas frame. What is kept of another
    package's object: ``from_xgi``, ``from_hypernetx``, ``from_hypergraphx``.
    """
    if isinstance(obj, Hypergraph):
        return obj
    for package, convert in (("xgi", from_xgi), ("hypernetx", from_hypernetx), ("hypergraphx", from_hypergraphx)):
        if _classes(obj, package):
            return convert(obj)
    if isinstance(obj, np.ndarray) or sparse.issparse(obj) or hasattr(obj, "iloc"):
        return Hypergraph.from_incidence(obj)
    raise DataError(
        f"cannot tell the hypergraph in a {type(obj).__name__}: allowed are a Hypergraph, an incidence matrix (array, "
        "sparse or pandas frame), and the hypergraphs of XGI, HyperNetX and hypergraphx; Hypergraph.from_edges takes a "
        "list of edges, Hypergraph.from_dict edge names and their vertices."
    )


# XGI


def from_xgi(network: Any) -> Hypergraph:
    """From an XGI Hypergraph or SimplicialComplex, all of whose faces are edges.

    Kept: nodes and edges with their ids and order, isolated nodes, empty edges, repeated edges, and the edge attribute
    ``weight`` (1 if absent). Other attributes are not. A DiHypergraph is refused.
    """
    if not _classes(network, "xgi") & {"Hypergraph", "SimplicialComplex"}:
        raise DataError(
            f"an XGI Hypergraph or SimplicialComplex is needed, got a {type(network).__name__}: "
            "xgi.to_hypergraph forgets directions."
        )
    members = network.edges.members(dtype=dict)
    weights = [network.edges[edge].get("weight", 1.0) for edge in members]
    return Hypergraph.from_dict(members, weights, vertices=list(network.nodes))


def to_xgi(hypergraph: Hypergraph) -> Any:
    """An XGI Hypergraph: ids, order, isolated vertices, empty edges and repeated edges stay.

    Weights become the edge attribute ``weight`` if one differs from 1. XGI's edges are sets, so vertices that repeat
    inside an edge are refused.
    """
    xgi = _package("xgi")
    sets = _sets(hypergraph, "an XGI edge is a set")
    weighted = bool((hypergraph.weights != 1).any())
    network = xgi.Hypergraph()
    network.add_nodes_from(hypergraph.vertex_names.tolist())
    for edge, vertices, weight in sets:
        network.add_edge(vertices, idx=edge, **({"weight": weight} if weighted else {}))
    return network


# HyperNetX


def from_hypernetx(network: Any) -> Hypergraph:
    """From a HyperNetX Hypergraph.

    Kept: nodes and edges with their ids and order, edge weights, and the weight of an incidence (a cell) as the
    multiplicity. Node weights and other properties are not.
    """
    if not (_classes(network, "hypernetx") and hasattr(network, "incidences")):
        raise DataError(f"a hypernetx.Hypergraph, version 2.3 or later, is needed, got a {type(network).__name__}.")
    with warnings.catch_warnings(action="ignore"):  # of pandas, about how HyperNetX calls it
        frame = network.incidences.to_dataframe
        edge_weights = network.edges.to_dataframe["weight"].to_dict()
    counts = number_array(frame["weight"].to_numpy(), "the weights of the incidences", 1).tolist()
    edges, nodes = (list(map(plain, frame.index.get_level_values(level))) for level in (0, 1))
    given = {plain(edge): weight for edge, weight in edge_weights.items()}
    weights = {edge: given.get(edge, 1.0) for edge in edges}
    return from_memberships(edges, nodes, counts, weights, dict.fromkeys(nodes))


def to_hypernetx(hypergraph: Hypergraph) -> Any:
    """A HyperNetX Hypergraph: ids, edge order, edge weights stay, and multiplicities become weights of incidences.

    HyperNetX knows nodes and edges through their incidences alone: isolated vertices and empty edges are refused, and
    its nodes come in the order in which the edges name them.
    """
    hypernetx = _package("hypernetx")
    members = hypergraph.members
    empty = np.flatnonzero(np.diff(members.indptr) == 0)
    isolated = np.setdiff1d(np.arange(hypergraph.n_vertices), members.indices)
    for found, what, names in (
        (isolated, "isolated vertices", hypergraph.vertex_names),
        (empty, "empty edges", hypergraph.edge_names),
    ):
        if len(found):
            raise DataError(
                f"HyperNetX holds no {what}, and there are {len(found)}, the first being "
                f"{names.item(found[0])!r}: keep the others with "
                "hypergraph.restricted(numpy.unique(hypergraph.members.indices))."
            )
    memberships = list(memberships_of(hypergraph))
    frame = import_module("pandas").DataFrame(memberships, columns=["edges", "nodes", "weight"])
    weights = dict(zip(hypergraph.edge_names.tolist(), hypergraph.weights.tolist(), strict=True))
    properties = {edge: {"weight": weight} for edge, weight in weights.items()}
    try:
        with warnings.catch_warnings(action="ignore"):  # of pandas, about how HyperNetX calls it
            network = hypernetx.Hypergraph(
                frame, edge_col="edges", node_col="nodes", cell_weight_col="weight", edge_properties=properties
            )
            held = from_hypernetx(network)
    except (TypeError, ValueError, LookupError) as error:
        raise DataError(f"HyperNetX cannot hold these names ({error}): give others with hypergraph.renamed.") from error
    held_weights = dict(zip(held.edge_names.tolist(), held.weights.tolist(), strict=True))
    if held_weights != weights or set(memberships_of(held)) != set(memberships):
        raise DataError(
            "HyperNetX cannot hold these names (weights or vertices get lost, as they do if an edge is named by a "
            "tuple or a set): give others with hypergraph.renamed."
        )
    return network


# hypergraphx


def from_hypergraphx(network: Any) -> Hypergraph:
    """From a hypergraphx Hypergraph.

    Kept: nodes and their order, edges in the order of ``get_edges()`` and named 0, 1, …, as they have no names there,
    and weights. A node twice in an edge counts twice. Not kept: metadata, and what ``add_empty_edge`` made, which is
    not among the edges. Directed, temporal and multiplex hypergraphs are refused.
    """
    others = {"DirectedHypergraph", "TemporalHypergraph", "MultiplexHypergraph"}
    classes = _classes(network, "hypergraphx")
    if others & classes or not (classes and hasattr(network, "get_edges")):
        raise DataError(
            f"a hypergraphx.Hypergraph is needed, got a {type(network).__name__}: build one from its edges."
        )
    return Hypergraph.from_edges(network.get_edges(), network.get_weights(), vertices=network.get_nodes())


def to_hypergraphx(hypergraph: Hypergraph, *, merge_equal_edges: bool = False) -> Any:
    """A hypergraphx Hypergraph: vertices with names and order, isolated ones too, edges in order, weights.

    Edges have no names there: the i-th of ``get_edges()`` is the i-th here. It is weighted if a weight differs from 1.
    Every set of vertices is stored once: equal edges are refused, or become one with the sum of their weights if
    ``merge_equal_edges``. Vertices that repeat inside an edge are refused.

    Parameters
    ----------
    hypergraph : Hypergraph
    merge_equal_edges : bool, default False
    """
    hypergraphx = _package("hypergraphx")
    totals: dict[tuple[Hashable, ...], float] = {}
    for edge, vertices, weight in _sets(hypergraph, "a hypergraphx edge is a set"):
        key = tuple(vertices)
        if key in totals and not merge_equal_edges:
            raise DataError(
                f"hypergraphx holds every set of vertices once, and edge {edge!r} repeats an earlier one: "
                "merge_equal_edges=True adds their weights."
            )
        totals[key] = totals.get(key, 0.0) + weight
    weighted = any(weight != 1 for weight in totals.values())
    network = hypergraphx.Hypergraph(weighted=weighted)
    network.add_nodes(hypergraph.vertex_names.tolist())
    try:
        network.add_edges(list(totals), weights=list(totals.values()) if weighted else None)
    except TypeError as error:
        raise DataError(
            f"hypergraphx sorts the vertices of an edge, and these names cannot be ({error}): give names of one kind "
            "with hypergraph.renamed."
        ) from error
    return network


# Shared


def _package(name: str) -> Any:
    """An optional package, or the line that installs it."""
    return optional(name, f"this conversion needs {name}: pip install {name}")


def _classes(obj: Any, package: str) -> set[str]:
    """The names of the classes of an object that come from a package."""
    return {kind.__name__ for kind in type(obj).__mro__ if kind.__module__.partition(".")[0] == package}


def _sets(hypergraph: Hypergraph, reason: str) -> Iterable[tuple[Any, list[Hashable], float]]:
    """Name, vertices and weight of every edge; an error if a vertex is in an edge other than once."""
    for edge, vertex, count in memberships_of(hypergraph):
        if count != 1:
            raise DataError(
                f"{reason}, and vertex {vertex!r} is {count:g} times in edge {edge!r}: write a HIF file, or count each "
                "vertex once with Hypergraph(h.members > 0, h.weights, h.vertex_names, h.edge_names)."
            )
    return zip(hypergraph.edge_names.tolist(), hypergraph.edges(), hypergraph.weights.tolist(), strict=True)
