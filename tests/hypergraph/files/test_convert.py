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
from tests.optional import Optional

pd = Optional("pandas")

RICH = Hypergraph.from_dict(
    {"e": ["b", "a"], 7: [], "f": ["c"], "again": ["c"]}, [2.5, 1, 1, 0.5], vertices=["alone", "c", "b", "a"]
)
REPEATS = Hypergraph.from_dict({"e": ["b", "a", "b"], "f": ["a"]}, [2.0, 1.0])


def imported(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed here", exc_type=ImportError)


@pytest.fixture(scope="module")
def xgi():
    return imported("xgi")


@pytest.fixture(scope="module")
def hypergraphx():
    return imported("hypergraphx")


@pytest.fixture(scope="module")
def hypernetx():
    return imported("hypernetx")


def as_pairs(hypergraph):
    """Multiplicities by edge and vertex, and weights by edge, whatever the order of either."""
    found = hypergraph.members.tocoo()
    edges, vertices = hypergraph.edge_names.tolist(), hypergraph.vertex_names.tolist()
    places = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    counts = {(edges[row], vertices[column]): count for row, column, count in places}
    return counts, dict(zip(edges, hypergraph.weights.tolist(), strict=True)), set(vertices)


# Matrices


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
    with pytest.raises(DataError, match=f"in a {type(given).__name__}: allowed are .*from_edges takes .*from_dict"):
        as_hypergraph(given)


@pytest.mark.parametrize("name", ["xgi", "hypernetx", "hypergraphx"])
def test_a_package_that_is_not_there(name, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, name, None)
    convert = {"xgi": to_xgi, "hypernetx": to_hypernetx, "hypergraphx": to_hypergraphx}[name]
    with pytest.raises(MissingExtraError, match=f"needs {name}: pip install {name}"):
        convert(REPEATS)


# XGI


def xgi_networks(xgi):
    yield xgi.fast_random_hypergraph(40, [0.05, 0.005], seed=1)
    yield xgi.Hypergraph([["x", "y"], ["x", "y"], ["z"]])
    yield xgi.Hypergraph()


def test_xgi_both_ways(xgi):
    for network in xgi_networks(xgi):
        found = from_xgi(network)
        assert as_hypergraph(network) == found
        assert found.vertex_names.tolist() == list(network.nodes)
        assert {edge: set(vertices) for edge, vertices in found.to_dict().items()} == network.edges.members(dtype=dict)
        back = to_xgi(found)
        assert list(back.nodes) == list(network.nodes)
        assert back.edges.members(dtype=dict) == network.edges.members(dtype=dict)


def test_xgi_keeps_weights_names_isolated_vertices_and_empty_edges(xgi):
    network = to_xgi(RICH)
    assert network.edges["e"] == {"weight": 2.5}
    assert set(network.nodes.isolates()) == {"alone"}
    assert set(network.edges.empty()) == {7}
    assert from_xgi(network) == RICH
    plain = to_xgi(RICH.with_weights(np.ones(4)))
    assert plain.edges["e"] == {}


def test_xgi_simplicial_complexes(xgi):
    found = as_hypergraph(xgi.SimplicialComplex([[1, 2, 3], [3, 4]]))
    assert sorted(found.edges()) == [[1, 2], [1, 2, 3], [1, 3], [2, 3], [3, 4]]


def test_xgi_refuses_what_it_cannot_hold(xgi):
    with pytest.raises(
        DataError, match="an XGI edge is a set, and vertex 'b' is 2 times in edge 'e': write a HIF file"
    ):
        to_xgi(REPEATS)
    counted_once = Hypergraph(REPEATS.members > 0, REPEATS.weights, REPEATS.vertex_names, REPEATS.edge_names)
    assert to_xgi(counted_once).edges.members("e") == {"a", "b"}
    with pytest.raises(DataError, match=r"needed, got a DiHypergraph: xgi\.to_hypergraph forgets directions"):
        as_hypergraph(xgi.DiHypergraph([([1], [2])]))
    network = xgi.Hypergraph()
    network.add_edge([1, 2], weight="heavy")
    with pytest.raises(DataError, match="weights must be numbers"):
        from_xgi(network)


def test_xgi_and_hif_files(xgi, tmp_path):
    for network in [*xgi_networks(xgi), to_xgi(RICH)]:
        found = from_xgi(network)
        write_hypergraph(found, tmp_path / "ours.json")
        read = xgi.read_hif(tmp_path / "ours.json")
        assert as_pairs(from_xgi(read)) == as_pairs(found)
        xgi.write_hif(network, tmp_path / "theirs.json")
        assert as_pairs(read_hypergraph(tmp_path / "theirs.json")) == as_pairs(found)
    directed = xgi.DiHypergraph([([1, 2], [3]), ([3], [4])])
    xgi.write_hif(directed, tmp_path / "directed.json")
    assert list(read_hypergraph(tmp_path / "directed.json").edges()) == [[1, 2, 3], [3, 4]]
    xgi.write_hif(xgi.SimplicialComplex([[1, 2, 3]]), tmp_path / "faces.json")
    assert sorted(read_hypergraph(tmp_path / "faces.json").edges()) == [[1, 2], [1, 2, 3], [1, 3], [2, 3]]


def test_objects_of_another_package_are_refused(xgi, hypergraphx):
    ours = Hypergraph.from_edges([["a", "b"]])
    objects = [xgi.Hypergraph([[1, 2]]), hypergraphx.Hypergraph([(1, 2)]), ours, [[1, 2]], None]
    for convert, own in ((from_xgi, 0), (from_hypergraphx, 1), (from_hypernetx, None)):
        for place, network in enumerate(objects):
            if place == own:
                assert convert(network).n_edges == 1
            else:
                with pytest.raises(DataError, match=f"is needed, got a {type(network).__name__}"):
                    convert(network)


# hypergraphx


def hypergraphx_networks(hypergraphx):
    from hypergraphx import generation

    yield generation.random_hypergraph(30, {2: 20, 3: 15, 5: 4}, seed=1)
    yield hypergraphx.Hypergraph([("x", "y"), ("z",), ("x", "y", "z")], weighted=True, weights=[2.5, 1, 4])
    yield hypergraphx.Hypergraph()


def test_hypergraphx_both_ways(hypergraphx):
    for network in hypergraphx_networks(hypergraphx):
        found = from_hypergraphx(network)
        assert as_hypergraph(network) == found
        assert found.vertex_names.tolist() == network.get_nodes()
        assert [tuple(sorted(edge)) for edge in found.edges()] == network.get_edges()
        assert found.weights.tolist() == network.get_weights()
        assert from_hypergraphx(to_hypergraphx(found)) == found


def test_hypergraphx_merges_equal_edges_only_when_asked(hypergraphx):
    with pytest.raises(
        DataError, match=r"every set of vertices once, and edge 'again' repeats.*merge_equal_edges=True"
    ):
        to_hypergraphx(RICH)
    merged = to_hypergraphx(RICH, merge_equal_edges=True)
    assert merged.get_nodes() == ["alone", "c", "b", "a"]
    # as the package itself does with them
    itself = hypergraphx.Hypergraph([("b", "a"), (), ("c",), ("c",)], weighted=True, weights=[2.5, 1, 1, 0.5])
    assert itself.get_edges() == merged.get_edges() == [("a", "b"), (), ("c",)]
    assert itself.get_weights() == merged.get_weights() == [2.5, 1, 1.5]


def test_hypergraphx_repeats_weights_and_kinds(hypergraphx):
    network = hypergraphx.Hypergraph([(1, 1, 2)])
    assert list(from_hypergraphx(network).edges()) == [[1, 1, 2]]
    with pytest.raises(DataError, match="a hypergraphx edge is a set, and vertex 'b' is 2 times in edge 'e'"):
        to_hypergraphx(REPEATS)
    assert not to_hypergraphx(Hypergraph.from_edges([[1, 2]])).is_weighted()
    assert to_hypergraphx(Hypergraph.from_edges([[1, 2]], [3.0])).is_weighted()
    with pytest.raises(DataError, match=r"these names cannot be .*names of one kind with hypergraph\.renamed"):
        to_hypergraphx(Hypergraph.from_edges([["a", 1]]))
    for kind in ("DirectedHypergraph", "TemporalHypergraph", "MultiplexHypergraph"):
        with pytest.raises(DataError, match=f"a hypergraphx.Hypergraph is needed, got a {kind}"):
            as_hypergraph(getattr(hypergraphx, kind)())


def test_hypergraphx_and_hif_files(hypergraphx, tmp_path, caplog):
    """It numbers the nodes that it reads and holds their names as metadata; what it writes has another layout."""
    from hypergraphx.readwrite.hif import read_hif, write_hif

    caplog.set_level(logging.CRITICAL)
    for network in hypergraphx_networks(hypergraphx):
        found = from_hypergraphx(network)
        write_hypergraph(found, tmp_path / "ours.json")
        read = read_hif(str(tmp_path / "ours.json"))
        names = {node: record["node"] for node, record in read.get_nodes(metadata=True).items()}
        assert sorted(names.values()) == sorted(network.get_nodes())
        named = {frozenset(names[v] for v in edge) for edge in read.get_edges()}
        assert named == set(map(frozenset, network.get_edges()))
    write_hif(network, str(tmp_path / "theirs.json"))
    with pytest.raises(TableError, match="unknown key 'type'"):
        read_hypergraph(tmp_path / "theirs.json")


# HyperNetX


def hypernetx_networks(hypernetx):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, about how HyperNetX calls it
        from hypernetx.utils.toys import HarryPotter, LesMis, TransmissionProblem

        scenes = LesMis().df_scenes
        scenes["Scene"] = scenes[["Volume", "Book", "Chapter", "Scene"]].astype(str).agg(".".join, axis=1)
        people = HarryPotter().dataframe.reset_index().astype(str)
        people.columns = ["person", *people.columns[1:]]
        cells = {"e": {"a": {"weight": 2.0}, "b": {"weight": 0.5}}, "f": {"a": {"weight": 1}}}
        return [
            hypernetx.Hypergraph(scenes[["Scene", "Characters"]].drop_duplicates()),
            hypernetx.Hypergraph(people[["House", "person"]]),
            hypernetx.Hypergraph(TransmissionProblem().df[["receivers", "senders"]].drop_duplicates()),
            hypernetx.Hypergraph(cells, edge_properties={"e": {"weight": 3.0}}),
            hypernetx.Hypergraph({}),
        ]


def test_hypernetx_both_ways(hypernetx):
    sizes = []
    for network in hypernetx_networks(hypernetx):
        found = from_hypernetx(network)
        sizes.append((found.n_vertices, found.n_edges, found.n_incidences))
        assert as_hypergraph(network) == found
        assert found.vertex_names.tolist() == list(network.nodes)
        assert found.edge_names.tolist() == list(network.edges)
        members = {(edge, vertex) for edge, vertices in network.incidence_dict.items() for vertex in vertices}
        assert as_pairs(found)[0].keys() == members
        back = to_hypernetx(found)
        assert list(back.edges) == list(network.edges)
        assert as_pairs(from_hypernetx(back)) == as_pairs(found)
    assert sizes == [(80, 402, 862), (140, 7, 140), (24, 9623, 18759), (2, 2, 3), (0, 0, 0)]


def test_hypernetx_keeps_weights_and_multiplicities(hypernetx):
    network = to_hypernetx(REPEATS)
    assert network.edges["e"].weight == 2.0
    assert network.incidences["e", "b"].weight == 2.0
    assert from_hypernetx(network) == REPEATS
    shares = Hypergraph.from_incidence([[0.25, 0], [1.75, 3]])
    assert from_hypernetx(to_hypernetx(shares)) == shares


def test_hypernetx_refuses_what_it_cannot_hold(hypernetx):
    isolated = Hypergraph.from_edges([[0, 2], [2]], vertices=4)
    with pytest.raises(
        DataError, match="no isolated vertices, and there are 2, the first being 1: keep the others with"
    ):
        to_hypernetx(isolated)
    assert list(to_hypernetx(isolated.restricted(np.unique(isolated.members.indices))).nodes) == [0, 2]
    with pytest.raises(DataError, match="no empty edges, and there are 1, the first being 'f'"):
        to_hypernetx(Hypergraph.from_dict({"e": [1], "f": []}))
    with pytest.raises(DataError, match="HyperNetX cannot hold these names"):
        to_hypernetx(Hypergraph.from_edges([[1, (1, 2)]]))
    for names in ([("a", 1), ("b", 2)], [frozenset([1]), frozenset([2])]):
        with pytest.raises(DataError, match=r"HyperNetX cannot hold these names \(weights or vertices get lost"):
            to_hypernetx(Hypergraph.from_edges([[1, 2], [2]], [2.0, 5.0], edge_names=names))


def test_hypernetx_and_hif_files(hypernetx, tmp_path, monkeypatch):
    # It fetches the schema before every file; the schema {} allows everything and needs no network.
    answer = types.SimpleNamespace(text="{}")
    monkeypatch.setattr("hypernetx.hif.requests", types.SimpleNamespace(get=lambda url: answer))
    for network in [*hypernetx_networks(hypernetx), to_hypernetx(REPEATS)]:
        found = from_hypernetx(network)
        if not found.n_incidences:
            continue
        write_hypergraph(found, tmp_path / "ours.json")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # files that it leaves open, and how it calls pandas
            read = hypernetx.from_hif(filename=str(tmp_path / "ours.json"))
            document = hypernetx.to_hif(network)
        assert as_pairs(from_hypernetx(read)) == as_pairs(found)
        (tmp_path / "theirs.json").write_text(json.dumps(document, default=lambda number: number.item()))
        assert as_pairs(read_hypergraph(tmp_path / "theirs.json")) == as_pairs(found)
