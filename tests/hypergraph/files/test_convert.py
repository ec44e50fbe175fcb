"""Each conversion against the real package, both ways, on data that it ships or generates."""

import json
import logging
import types
import warnings

import numpy as np
import pytest
from scipy import sparse

from biclique.exceptions import DataError, MissingExtraError, TableError
from biclique.hypergraph.files.by_ending import read_hypergraph, write_hypergraph
from biclique.hypergraph.files.convert import (
    as_hypergraph,
    from_hypergraphx,
    from_hypernetx,
    from_xgi,
    to_hypergraphx,
    to_hypernetx,
    to_xgi,
)
from biclique.hypergraph.hypergraph import Hypergraph
from tests.calls import refusals, refuses
from tests.optional import Optional, needs

pd = Optional("pandas")

RICH = Hypergraph.from_dict(
    {"e": ["b", "a"], 7: [], "f": ["c"], "again": ["c"]}, [2.5, 1, 1, 0.5], vertices=["alone", "c", "b", "a"]
)
REPEATS = Hypergraph.from_dict({"e": ["b", "a", "b"], "f": ["a"]}, [2.0, 1.0])
ISOLATED = Hypergraph.from_edges([[0, 2], [2]], vertices=4)
CONVERSIONS = {
    "xgi": (from_xgi, to_xgi),
    "hypergraphx": (from_hypergraphx, to_hypergraphx),
    "hypernetx": (from_hypernetx, to_hypernetx),
}


def imported(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed here", exc_type=ImportError)


def networks(name):
    """Hypergraphs of a package."""
    package = imported(name)
    if name == "xgi":
        random = package.fast_random_hypergraph(40, [0.05, 0.005], seed=1)
        return [random, package.Hypergraph([["x", "y"], ["x", "y"], ["z"]]), package.Hypergraph()]
    if name == "hypergraphx":
        random = imported("hypergraphx.generation").random_hypergraph(30, {2: 20, 3: 15, 5: 4}, seed=1)
        edges = [("x", "y"), ("z",), ("x", "y", "z")]
        return [random, package.Hypergraph(edges, weighted=True, weights=[2.5, 1, 4]), package.Hypergraph()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, about how HyperNetX calls it
        toys = imported("hypernetx.utils.toys")
        scenes = toys.LesMis().df_scenes
        scenes["Scene"] = scenes[["Volume", "Book", "Chapter", "Scene"]].astype(str).agg(".".join, axis=1)
        people = toys.HarryPotter().dataframe.reset_index().astype(str)
        people.columns = ["person", *people.columns[1:]]
        cells = {"e": {"a": {"weight": 2.0}, "b": {"weight": 0.5}}, "f": {"a": {"weight": 1}}}
        return [
            package.Hypergraph(scenes[["Scene", "Characters"]].drop_duplicates()),
            package.Hypergraph(people[["House", "person"]]),
            package.Hypergraph(toys.TransmissionProblem().df[["receivers", "senders"]].drop_duplicates()),
            package.Hypergraph(cells, edge_properties={"e": {"weight": 3.0}}),
            package.Hypergraph({}),
        ]


def contents(name, network):
    """The nodes of a package's hypergraph, and the members of every edge, as the package says."""
    if name == "hypergraphx":  # its edges have no names
        return network.get_nodes(), dict(enumerate(network.get_edges()))
    members = network.edges.members(dtype=dict) if name == "xgi" else network.incidence_dict
    return list(network.nodes), {edge: members[edge] for edge in network.edges}


def as_pairs(hypergraph):
    """Multiplicities by edge and vertex, and weights by edge, whatever the order of either."""
    found = hypergraph.members.tocoo()
    edges, vertices = hypergraph.edge_names.tolist(), hypergraph.vertex_names.tolist()
    places = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    counts = {(edges[row], vertices[column]): count for row, column, count in places}
    return counts, dict(zip(edges, hypergraph.weights.tolist(), strict=True)), set(vertices)


def test_matrices_and_hypergraphs():
    matrix = np.array([[1, 0], [2, 1], [0, 0]])
    expected = Hypergraph.from_incidence(matrix)
    for given in (matrix, matrix.astype(float), sparse.csr_array(matrix), sparse.coo_matrix(matrix), expected):
        assert as_hypergraph(given) == expected
    assert as_hypergraph(expected) is expected
    frame = as_hypergraph(pd.DataFrame(matrix, index=["a", "b", "c"], columns=["e", "f"]))
    assert frame == expected.renamed(vertex_names=["a", "b", "c"], edge_names=["e", "f"])


@pytest.mark.parametrize("given", [[[0, 1], [1, 2]], {"e": [1]}, "file.json", None])
def test_what_is_no_hypergraph(given):
    refuses(DataError, f"in a {type(given).__name__}: allowed are .*from_edges takes .*from_dict", as_hypergraph, given)


# All packages


@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_package_that_is_not_there(name, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, name, None)
    refuses(MissingExtraError, f"needs {name}: pip install {name}", CONVERSIONS[name][1], REPEATS)


@pytest.mark.parametrize("name", CONVERSIONS)
def test_packages_both_ways(name):
    ours_of, theirs_of = CONVERSIONS[name]
    for network in networks(name):
        ours = ours_of(network)
        nodes, edges = contents(name, network)
        assert as_hypergraph(network) == ours
        assert ours.vertex_names.tolist() == nodes
        assert ours.edge_names.tolist() == list(edges)
        assert as_pairs(ours)[0].keys() == {(edge, node) for edge, members in edges.items() for node in members}
        back = theirs_of(ours)
        assert list(contents(name, back)[1]) == list(edges)
        assert as_pairs(ours_of(back)) == as_pairs(ours)
        if name != "hypernetx":  # whose nodes come in the order in which edges name them
            assert ours_of(back) == ours


@pytest.mark.parametrize("name", ["xgi", "hypernetx"])
def test_hif_files(name, tmp_path, monkeypatch):
    package, (ours_of, theirs_of) = imported(name), CONVERSIONS[name]
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    if name == "hypernetx":  # fetches the schema before every file; the schema {} allows everything
        answer = types.SimpleNamespace(text="{}")
        monkeypatch.setattr("hypernetx.hif.requests", types.SimpleNamespace(get=lambda url: answer))
    for network in [*networks(name), theirs_of(RICH if name == "xgi" else REPEATS)]:
        found = ours_of(network)
        if name == "hypernetx" and not found.n_incidences:
            continue
        write_hypergraph(found, ours)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # files that HyperNetX leaves open, and how it calls pandas
            if name == "xgi":
                read = package.read_hif(ours)
                package.write_hif(network, theirs)
            else:
                read = package.from_hif(filename=str(ours))
                theirs.write_text(json.dumps(package.to_hif(network), default=lambda number: number.item()))
        assert as_pairs(ours_of(read)) == as_pairs(found)
        assert as_pairs(read_hypergraph(theirs)) == as_pairs(found)


def test_hif_files_of_hypergraphx(tmp_path, caplog):
    """It numbers the nodes that it reads and holds their names as metadata; what it writes has another layout."""
    hif = imported("hypergraphx.readwrite.hif")
    caplog.set_level(logging.CRITICAL)
    for network in networks("hypergraphx"):
        write_hypergraph(from_hypergraphx(network), tmp_path / "ours.json")
        read = hif.read_hif(str(tmp_path / "ours.json"))
        names = {node: record["node"] for node, record in read.get_nodes(metadata=True).items()}
        assert sorted(names.values()) == sorted(network.get_nodes())
        named = {frozenset(names[v] for v in edge) for edge in read.get_edges()}
        assert named == set(map(frozenset, network.get_edges()))
    hif.write_hif(network, str(tmp_path / "theirs.json"))
    refuses(TableError, "unknown key 'type'", read_hypergraph, tmp_path / "theirs.json")


def test_objects_of_another_package_are_refused():
    ours = Hypergraph.from_edges([["a", "b"]])
    objects = [imported("xgi").Hypergraph([[1, 2]]), imported("hypergraphx").Hypergraph([(1, 2)]), ours, [[1, 2]], None]
    for convert, own in ((from_xgi, 0), (from_hypergraphx, 1), (from_hypernetx, None)):
        for place, network in enumerate(objects):
            if place == own:
                assert convert(network).n_edges == 1
            else:
                refuses(DataError, f"is needed, got a {type(network).__name__}", convert, network)


# XGI


def test_xgi_keeps_weights_names_isolated_vertices_and_empty_edges():
    imported("xgi")
    network = to_xgi(RICH)
    assert network.edges["e"] == {"weight": 2.5}
    assert set(network.nodes.isolates()) == {"alone"}
    assert set(network.edges.empty()) == {7}
    assert from_xgi(network) == RICH
    plain = to_xgi(RICH.with_weights(np.ones(4)))
    assert plain.edges["e"] == {}


def test_xgi_complexes_and_directions(tmp_path):
    xgi = imported("xgi")
    found = as_hypergraph(xgi.SimplicialComplex([[1, 2, 3], [3, 4]]))
    assert sorted(found.edges()) == [[1, 2], [1, 2, 3], [1, 3], [2, 3], [3, 4]]
    xgi.write_hif(xgi.SimplicialComplex([[1, 2, 3]]), tmp_path / "faces.json")
    assert sorted(read_hypergraph(tmp_path / "faces.json").edges()) == [[1, 2], [1, 2, 3], [1, 3], [2, 3]]
    directed = xgi.DiHypergraph([([1, 2], [3]), ([3], [4])])
    xgi.write_hif(directed, tmp_path / "directed.json")
    assert list(read_hypergraph(tmp_path / "directed.json").edges()) == [[1, 2, 3], [3, 4]]
    refuses(DataError, r"needed, got a DiHypergraph: xgi\.to_hypergraph forgets directions", as_hypergraph, directed)


def test_xgi_refuses_what_it_cannot_hold():
    xgi = imported("xgi")
    message = "an XGI edge is a set, and vertex 'b' is 2 times in edge 'e': write a HIF file"
    refuses(DataError, message, to_xgi, REPEATS)
    counted_once = Hypergraph(REPEATS.members > 0, REPEATS.weights, REPEATS.vertex_names, REPEATS.edge_names)
    assert to_xgi(counted_once).edges.members("e") == {"a", "b"}
    network = xgi.Hypergraph()
    network.add_edge([1, 2], weight="heavy")
    refuses(DataError, "weights must be numbers", from_xgi, network)


# hypergraphx


def test_hypergraphx_merges_equal_edges_only_when_asked():
    hypergraphx = imported("hypergraphx")
    refuses(DataError, r"set of vertices once, and edge 'again' repeats.*merge_equal_edges=True", to_hypergraphx, RICH)
    merged = to_hypergraphx(RICH, merge_equal_edges=True)
    assert merged.get_nodes() == ["alone", "c", "b", "a"]
    # as the package itself does with them
    itself = hypergraphx.Hypergraph([("b", "a"), (), ("c",), ("c",)], weighted=True, weights=[2.5, 1, 1, 0.5])
    assert itself.get_edges() == merged.get_edges() == [("a", "b"), (), ("c",)]
    assert itself.get_weights() == merged.get_weights() == [2.5, 1, 1.5]


def test_hypergraphx_repeats_weights_and_kinds():
    hypergraphx = imported("hypergraphx")
    network = hypergraphx.Hypergraph([(1, 1, 2)])
    assert list(from_hypergraphx(network).edges()) == [[1, 1, 2]]
    refuses(DataError, "a hypergraphx edge is a set, and vertex 'b' is 2 times in edge 'e'", to_hypergraphx, REPEATS)
    assert from_hypergraphx(networks("hypergraphx")[1]).weights.tolist() == [2.5, 1, 4]
    assert not to_hypergraphx(Hypergraph.from_edges([[1, 2]])).is_weighted()
    assert to_hypergraphx(Hypergraph.from_edges([[1, 2]], [3.0])).is_weighted()
    with pytest.raises(DataError, match=r"these names cannot be .*names of one kind with hypergraph\.renamed"):
        to_hypergraphx(Hypergraph.from_edges([["a", 1]]))
    for kind in ("DirectedHypergraph", "TemporalHypergraph", "MultiplexHypergraph"):
        with pytest.raises(DataError, match=f"a hypergraphx.Hypergraph is needed, got a {kind}"):
            as_hypergraph(getattr(hypergraphx, kind)())


# HyperNetX


def test_hypernetx_keeps_weights_and_multiplicities():
    imported("hypernetx")
    network = to_hypernetx(REPEATS)
    assert network.edges["e"].weight == 2.0
    assert network.incidences["e", "b"].weight == 2.0
    assert from_hypernetx(network) == REPEATS
    shares = Hypergraph.from_incidence([[0.25, 0], [1.75, 3]])
    assert from_hypernetx(to_hypernetx(shares)) == shares
    assert list(to_hypernetx(ISOLATED.restricted(np.unique(ISOLATED.members.indices))).nodes) == [0, 2]


def named(names):
    return Hypergraph.from_edges([[1, 2], [2]], [2.0, 5.0], edge_names=names)


LOST = r"HyperNetX cannot hold these names \(weights or vertices get lost"
test_hypernetx_refuses_what_it_cannot_hold = needs("hypernetx")(
    refusals(
        (lambda: to_hypernetx(ISOLATED), DataError, "2, the first being 1: keep the others with"),
        (lambda: to_hypernetx(Hypergraph.from_dict({"e": [1], "f": []})), DataError, "no empty edges.* 1, .*being 'f'"),
        (lambda: to_hypernetx(Hypergraph.from_edges([[1, (1, 2)]])), DataError, "HyperNetX cannot hold these names"),
        (lambda: to_hypernetx(named([("a", 1), ("b", 2)])), DataError, LOST),
        (lambda: to_hypernetx(named([frozenset([1]), frozenset([2])])), DataError, LOST),
    )
)
