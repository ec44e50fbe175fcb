import gzip
import json
import os
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from biclique.exceptions import BicliqueError, DataError, MemoryLimitError, ParameterError, TableError
from biclique.hypergraph.files.by_ending import read_hypergraph, write_hypergraph
from biclique.hypergraph.files.edge_list import format_edge_list, parse_edge_list
from biclique.hypergraph.files.hgr import format_hgr, parse_hgr
from biclique.hypergraph.files.hif import format_hif, parse_hif
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.runtime import memory
from tests.calls import peak_memory, refusals, refuses

# Isolated vertices, an empty edge, vertices and edges that repeat, weights that need all digits, an order of its own.
RICH = Hypergraph.from_dict(
    {"e, 1": ["b", "a", "b"], "none": [], "ü": ["c"], "again": ["c"]},
    [0.1 + 0.2, 1.0, 1e-300, -2.0],
    vertices=["alone", "c", "b", "a", 'q"uote', "two\nlines"],
)
PLAIN = Hypergraph.from_edges([[2, 0], [1, 2, 4], [4]], vertices=6)
NOTHING = Hypergraph.from_edges([])
EMPTY_EDGES = Hypergraph.from_edges([[0], [], []], vertices=3)


def incidence(**keys):
    return hif(incidences=[{"edge": 1, "node": 2, **keys}])


def hif(**document):
    return json.dumps({"incidences": [], **document})


# All formats


@pytest.mark.parametrize("suffix", ["json", "hif", "json.gz", "HIF", "csv", "tsv", "csv.gz"])
@pytest.mark.parametrize("hypergraph", [RICH, PLAIN, NOTHING], ids=["rich", "plain", "nothing"])
def test_files_keep_everything(suffix, hypergraph, tmp_path):
    path = tmp_path / f"h.{suffix}"
    write_hypergraph(hypergraph, path)
    assert read_hypergraph(path) == hypergraph
    assert read_hypergraph(str(path)) == hypergraph
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", ["json", "csv", "hgr"])
def test_what_is_no_text_file_is_an_error_that_names_it(suffix, write, tmp_path):
    for content, message in (
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf \n\n", "the file is empty"),
        ("ü\n".encode("latin-1") * 3, r"not a text file in UTF-8 \(byte 0\)"),
        (b"1 2\n\0", "character 4 is a NUL"),
    ):
        refuses(TableError, rf"h\.{suffix}: .*{message}", read_hypergraph, write(content, f"h.{suffix}"))
    refuses(TableError, "No such file", read_hypergraph, tmp_path / f"absent.{suffix}")
    (tmp_path / f"folder.{suffix}").mkdir()
    refuses(TableError, "cannot be read", read_hypergraph, tmp_path / f"folder.{suffix}")
    for place in (f"folder.{suffix}", f"no folder/h.{suffix}"):
        refuses(DataError, "cannot be written", write_hypergraph, PLAIN, tmp_path / place)
    refuses(TableError, "cannot be read", read_hypergraph, f"a\0b.{suffix}")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_file_without_permission_is_an_error(write):
    path = write(hif(), "h.json")
    path.chmod(0)
    refuses(TableError, "Permission denied", read_hypergraph, path)


def test_broken_gzip_files_are_errors(write):
    whole = gzip.compress(hif().encode())
    for content in (b"plain", whole[:-9], whole[:12] + b"\xff" * 9 + whole[21:]):
        refuses(TableError, r"h\.json\.gz: ", read_hypergraph, write(content, "h.json.gz"))


names = st.one_of(
    st.lists(st.integers(-(10**20), 10**20), unique=True, max_size=6),
    st.lists(st.text(max_size=5), unique=True, max_size=6),
)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def hypergraphs(draw, names=names):
    vertices, edges = draw(names), draw(names)
    counts = st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1e300))
    shape = (len(edges), len(vertices))
    members = np.array(draw(st.lists(counts, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
    weights = draw(st.lists(st.one_of(st.just(1.0), numbers), min_size=shape[0], max_size=shape[0]))
    return Hypergraph(sparse.csr_array(members.reshape(shape)), weights, vertices, edges)


@settings(max_examples=100, deadline=None)
@given(hypergraphs(st.lists(st.one_of(st.integers(), st.text(max_size=4)), unique=True, max_size=6)))
def test_hif_keeps_any_names_that_are_text_or_integers(hypergraph):
    back = parse_hif(format_hif(hypergraph))
    assert back == hypergraph
    assert [type(name) for name in back.vertex_names.tolist()] == [type(n) for n in hypergraph.vertex_names.tolist()]


@settings(max_examples=100, deadline=None)
@given(hypergraphs())
def test_edge_lists_keep_what_they_do_not_refuse(hypergraph):
    for delimiter in ",\t":
        with suppress(DataError):
            text = format_edge_list(hypergraph, delimiter)
            assert parse_edge_list(text, delimiter) == hypergraph


def test_a_link_says_the_format_and_its_target_is_written(tmp_path):
    target, link = tmp_path / "real.hgr", tmp_path / "link.json"
    link.symlink_to(target)
    write_hypergraph(PLAIN, link)
    assert parse_hif(target.read_text()) == PLAIN == read_hypergraph(link)


# HIF


def test_hif_as_written():
    small = Hypergraph.from_dict({"e": ["a", 1, 1], 2: []}, {"e": 2.5}, vertices=["z", 1, "a"])
    text = format_hif(small)
    assert json.loads(text) == {
        "network-type": "undirected",
        "nodes": [{"node": "z"}, {"node": 1}, {"node": "a"}],
        "edges": [
            {"edge": "e", "weight": 2.5, "attrs": {"weight": 2.5}},
            {"edge": 2, "weight": 1, "attrs": {"weight": 1}},
        ],
        "incidences": [{"edge": "e", "node": 1, "weight": 2}, {"edge": "e", "node": "a", "weight": 1}],
    }
    assert text.count("\n") == 16  # one item a line
    assert parse_hif(text) == small


def test_hif_orders_ids_and_sums():
    """Further keys inside an item are in files that the standard calls compliant."""
    found = parse_hif(
        hif(
            nodes=[{"node": "last", "weight": 7, "attrs": {"a": [1]}, "online": True}, {"node": 1}, {"node": 1}],
            incidences=[
                {"edge": 1, "node": "1", "role": "PI"},
                {"edge": "1", "node": 1, "weight": 0.5},
                {"edge": "1", "node": 1, "weight": 2},
                {"edge": 1, "node": 2.0},
            ],
            edges=[{"edge": "empty", "weight": 3}, {"edge": "1", "attr": {}, "misc_properties": {}}],
            metadata={"name": "x", "nested": {"deep": [1, {"er": None}]}},
        )
    )
    assert found.vertex_names.tolist() == ["last", 1, "1", 2]
    assert found.edge_names.tolist() == ["empty", "1", 1]
    assert found.weights.tolist() == [3, 1, 1]
    np.testing.assert_array_equal(found.members.toarray(), [[0, 0, 0, 0], [0, 2.5, 0, 0], [0, 0, 1, 1]])


def test_hif_directed_and_simplicial():
    directed = [{"edge": "e", "node": 1, "direction": "head"}, {"edge": "e", "node": 2, "direction": "tail"}]
    found = parse_hif(hif(**{"network-type": "directed"}, incidences=directed))
    assert found.to_dict() == {"e": [1, 2]}
    faces = [{"edge": 0, "node": 1}, {"edge": 0, "node": 2}, {"edge": 1, "node": 1}]
    assert parse_hif(hif(**{"network-type": "asc"}, incidences=faces)).to_dict() == {0: [1, 2], 1: [1]}


BAD_HIF = [
    ("[]", "must be an object with the key 'incidences', got an array"),
    ("{}", "the key 'incidences' is missing"),
    (hif(nodez=[]), "unknown key 'nodez'; allowed are network-type, metadata, incidences, nodes, edges"),
    (hif(**{"network-type": "mixed"}), "network-type must be one of undirected, directed, asc"),
    (hif(metadata=[]), "metadata must be an object, got an array"),
    (hif(incidences={}), "incidences must be an array, got an object"),
    (hif(nodes=None), "nodes must be an array, got null"),
    (hif(incidences=[{"edge": 1, "node": 2}, 7]), r"incidences\[1\] must be an object, got 7"),
    (hif(incidences=[{"edge": 1, "node": 2}, {"edge": 1}]), r"incidences\[1\]\.node is missing"),
    (hif(incidences=[{"edge": 1, "node": 2.5}]), r"incidences\[0\]\.node must be text or a whole number, got 2.5"),
    (hif(nodes=[{"node": None}]), r"nodes\[0\]\.node must be text or a whole number, got null"),
    (hif(edges=[{"edge": [1]}]), r"edges\[0\]\.edge must be text or a whole number, got an array"),
    (hif(incidences=[{"edge": 1, "node": 2, "weight": -1}]), r"incidences\[0\]\.weight must be 0 or more, got -1"),
    (incidence(weight="1"), r"incidences\[0\]\.weight must be a finite number, g"),
    (hif(edges=[{"edge": 1, "weight": True}]), r"edges\[0\]\.weight must be a finite number, got a boolean"),
    (hif(edges=[{"edge": 1, "weight": 10**400}]), r"edges\[0\]\.weight .* got a number too large"),
    ('{"incidences": [{"edge": 1, "node": 2, "weight": 1e999}]}', r"weight .* got a number too large"),
    (incidence(direction="up"), r"direction must be 'head' or 'tail', got \"up\""),
    (incidence(attrs=[]), r"incidences\[0\]\.attrs must be an object, got an arr"),
    (hif(edges=[{"edge": 1}, {"edge": 1, "weight": 2}]), r"edges\[1\] comes again with another weight"),
    ('{"incidences": [],\n "x": }', "not JSON: Expecting value in line 2, column 7"),
    ('{"incidences": [], "metadata":\n {"NaN": "NaN", "a": NaN}}', "NaN is not a JSON number"),
    ("[" * 100_000, "nested too deeply"),
    ('{"incidences": [], "metadata": {"a": ' + "[" * 50_000 + "]" * 50_000 + "}}", "nested too deeply"),
    ('{"incidences": [{"edge": ' + "9" * 5000 + ', "node": 1}]}', "a number cannot be read"),
    (
        hif(incidences=[{"edge": 1, "node": 3}, *[{"edge": 1, "node": 2, "weight": 1e308}] * 2]),
        "multiplicities must be finite",
    ),
    (hif(edges=[{"edge": 1, "attrs": {"weight": "2"}}]), r"edges\[0\]\.attrs\.weight must be .* got text"),
    ('{"incidences": [], "nodes": [], "incidences": []}', "has the key 'incidences' twice"),
    ('{"incidences": [\n{"edge": 1, "node": 2, "node": 3}]}', "an object has the key 'node' twice: keep one"),
]


def test_hif_weights_of_edges_in_attributes():
    edges = [
        {"edge": 0, "attrs": {"weight": 2}},
        {"edge": 1, "attr": {"weight": 3.5}},
        {"edge": 2, "weight": 4, "attrs": {"weight": 5}},
        {"edge": 3, "attrs": {"color": "red"}, "attr": {"weight": 6}},
        {"edge": 4, "attrs": {"weight": None}},
    ]
    assert parse_hif(hif(edges=edges)).weights.tolist() == [2, 3.5, 4, 6, 1]


# hMetis

HGR = "% a comment\n4 7 11\n2 1 2\n 3.5 1 7 5 6\n% inside\n8 5 6 4\n7 2 3 4\n" + "5\n" * 7


def test_hgr_with_all_weights():
    found = parse_hgr(HGR)
    assert found.vertex_names.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert list(found.edges()) == [[1, 2], [1, 5, 6, 7], [4, 5, 6], [2, 3, 4]]
    assert found.weights.tolist() == [2, 3.5, 8, 7]
    assert parse_hgr(HGR.replace("11", "1").removesuffix("5\n" * 7)) == found
    assert parse_hgr("2 3 10\r\n1 1 2\r\n3\r\n1\r\n0\r\n.5\r\n") == parse_hgr("2 3\n2 1 1\n\n3")


def test_hgr_as_written():
    assert format_hgr(PLAIN) == "3 6\n1 3\n2 3 5\n5\n"
    weighted = Hypergraph.from_edges([["a", "b", "b"], ["c"]], [0.5, 2], vertices=["c", "b", "a", "alone"])
    text = format_hgr(weighted)
    assert text == "2 4 1\n0.5 2 2 3\n2 1\n"
    assert parse_hgr(text) == weighted.renamed(vertex_names=[1, 2, 3, 4])
    assert format_hgr(EMPTY_EDGES.restricted(range(3))) == "1 3\n1\n"  # as the refusal says


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.lists(st.integers(1, 5), min_size=1), st.one_of(st.just(1.0), st.floats(0, 1e300)))))
def test_hgr_keeps_positions(pairs):
    vertices = range(1, 6)
    hypergraph = Hypergraph.from_edges([edge for edge, _ in pairs], [w for _, w in pairs], vertices=vertices)
    assert parse_hgr(format_hgr(hypergraph)) == hypergraph


BAD_HGR = [
    ("% only\n", "the file is empty"),
    ("%\n2\n", r"line 2 must be 'n_edges n_vertices \[fmt\]', got '2'"),
    ("1 -2\n1", "line 1 must be"),
    ("1 ٢\n1", "line 1 must be"),
    ("1 2 2\n1", "the format code must be 1, 10 or 11, got '2'"),
    ("2 3\n1 2\n", "ends at line 2: the header announces 2 lines, got 1; blank lines do not count"),
    ("1 3\n1 2\n\n3\n", "line 4 is one too many: the header announces 1 lines"),
    ("1 2 10\n1 2\n5\n6 7\n", "line 4 must be the weight of one vertex, got 2 fields"),
    ("1 1 10\n1\n-5\n", "line 3: weights must be numbers, 0 or more, got '-5'"),
    ("1 2 1\nx 2\n", "line 2: weights must be numbers, 0 or more, got 'x'"),
    ("1 2 1\n1_0 2\n", "line 2: weights must be numbers"),
    ("1 2 1\n1e999 2\n", "line 2: weights must be numbers"),
    ("1 2 1\n5\n", "line 2 has a weight and no vertices"),
    ("1 2\n0 1\n", "line 2: vertices must be whole numbers from 1 to 2, got '0'"),
    ("1 2\n1 3\n", "got '3'"),
    ("1 2\n1 1.0\n", r"got '1\.0'"),
    ("1 99999999999\n1 2\n", "line 1 announces 99999999999 vertices, far more than the edges hold"),
    ("99999999999999999999999 1\n1 2\n", "line 1 announces more edges or vertices than fit into memory"),
]

# Edge lists


def test_weights_and_counts_of_a_long_edge_list():
    text = "edge,vertex,weight,count\n2,10,,\n1,9,0.5,2\n2,9,3,\n,7,,\n2,8,3,0\n2,9,,0.5\n5,,-4,\n"
    found = parse_edge_list(text)
    assert found.vertex_names.tolist() == [7, 8, 9, 10]
    assert found.edge_names.tolist() == [2, 1, 5]
    assert found.weights.tolist() == [3, 0.5, -4]
    np.testing.assert_array_equal(found.members.toarray(), [[0, 0, 1.5, 1], [0, 0, 2, 0], [0, 0, 0, 0]])


def test_edge_lists_as_written():
    assert format_edge_list(PLAIN) == "edge,vertex\n0,0\n0,2\n1,1\n1,2\n1,4\n2,4\n,3\n,5\n"
    weighted = Hypergraph.from_dict({"e": ["b", "a", "a"], "f": []}, {"e": 0.5}, vertices=["z", "a", "b"])
    assert format_edge_list(weighted) == "edge,vertex,weight,count\n,z,,\n,a,,\n,b,,\ne,a,0.5,2\ne,b,0.5,1\nf,,1,\n"
    unsorted = Hypergraph.from_edges([[1, 2]], vertices=[2, 1, 3])
    mixed = Hypergraph.from_edges([["1", "02", "x"]], edge_names=["07"])
    for hypergraph in (unsorted, mixed):
        assert parse_edge_list(format_edge_list(hypergraph)) == hypergraph


BAD_EDGE_LISTS = [
    ("edge,vertex\na\n", "line 2: 1 fields, the header has 2"),
    ("edge,vertex,weight\ne,a,1\nf,b,2\ne,c,2\n", "line 4: edge 'e' has weight 1 above and 2 here"),
    ("edge,vertex,weight\ne,a,inf\n", "line 2: the weight must be a finite number, got 'inf'"),
    ("edge,vertex,count\ne,a,1e999\n", "line 2: the count must be a finite number"),
    ("edge,vertex,count\ne,a,-1\n", "line 2: the count must be 0 or more"),
    ("edge,vertex,count\ne,,1\n", "line 2: an edge without a vertex has no count"),
    ("edge,vertex,count\n,a,1\n", "line 2: a vertex without an edge has no weight and no count"),
    ("edge,vertex,weight\n,,1\n", "line 2: neither an edge nor a vertex"),
    ("edge,vertex,count\ne,a,1e308\ne,a,1e308\n", "multiplicities must be finite"),
    ("a,,b\n", "line 1: field 2 is empty"),
    ("edge,vertex,edge_id\n", "both 'edge' and 'edge_id'"),
    ("1 2 3\n4 5\n", "line 1: every line is one field between commas, but has spaces inside"),
    ("7\n1 2 3\n", "line 2: every line is one field between commas, but has spaces inside: separate"),
    ("source,target\n1,2\n2,3\n", "line 1 looks like a header above whole numbers, but has no columns 'edge' and"),
    ('edge,vertex\ne,"a\n', "line 2: not a table .unexpected end of data"),
    ("a," + "x" * 200_000, "line 1: not a table .field larger than field limit"),
]

BAD = {"json": BAD_HIF, "hgr": BAD_HGR, "csv": BAD_EDGE_LISTS}


@pytest.mark.parametrize(("suffix", "text", "message"), [(suffix, *case) for suffix in BAD for case in BAD[suffix]])
def test_bad_files(suffix, text, message, write):
    path = write(text, f"bad.{suffix}")
    with pytest.raises(TableError, match=message) as caught:
        read_hypergraph(path)
    assert str(caught.value).startswith(f"{path}: ")


# Writing


ENDINGS = r"must end in one of \.json, \.hif, \.hgr, \.csv, \.tsv"
OTHER_NAMES = r"needs edge names that are text or integers, got .*renamed\(edge_names=…\)"
TOTAL = r"times in all, which is more than 1e\+08: write \.json or \.csv"
NAMES = [
    (["1", "2"], "text that looks like whole numbers, such as '1'.*hypergraph.renamed"),
    (["1", 2], "all integers or all text, got int, str: write .json"),
    ([1.5, 2.5], "all integers or all text, got float"),
    ([True, "a"], "got bool, str"),
    ([(1, 2), (2, 3)], "got tuple"),
    (["", "a"], "vertex name '' cannot be written"),
    (["a ", "b"], "vertex name 'a ' cannot be written"),
    *((["a" + sign, "b"], "cannot be written") for sign in ("\0b", "\rb", "\ud800")),
    ([10**5000, 1], "too many digits"),
    ([10**1500, 1], "text that looks like whole numbers|would come back"),
]


def named(*edge_names):
    return Hypergraph.from_edges([[0], [1]], edge_names=edge_names)


test_refused_with_a_reason = refusals(
    *((partial(read_hypergraph, path), TableError, ENDINGS) for path in ("h.txt", "h", "h.gz")),
    *((partial(write_hypergraph, PLAIN, path), DataError, ENDINGS) for path in ("h.txt", "h", "h.gz")),
    (lambda: read_hypergraph(None), TableError, "a path is needed, got a NoneType"),
    (lambda: write_hypergraph([[1, 2]], "h.json"), DataError, "a Hypergraph is needed, got a list"),
    (
        lambda: write_hypergraph("h.json", PLAIN),
        ParameterError,
        r"first, as in XGI: write_hypergraph\(hypergraph, path",
    ),
    *((partial(format_hif, named("e", name)), DataError, OTHER_NAMES) for name in [(1, 2), 1.5, True]),
    (lambda: format_hif(Hypergraph.from_edges([[10**5000]])), DataError, "too many digits"),
    *((partial(format_hgr, Hypergraph.from_incidence([[count], [1]])), DataError, TOTAL) for count in (1e9, 1e15)),
    (lambda: format_hgr(Hypergraph.from_incidence([[0.5]])), DataError, "whole multiplicities only"),
    (lambda: format_hgr(PLAIN.with_weights([1, -1, 1])), DataError, "no negative weights"),
    (lambda: format_hgr(EMPTY_EDGES), DataError, r"2 have none, .* 1: drop them with hypergraph\.restricted\(range"),
    *((partial(format_edge_list, Hypergraph.from_edges([vertices])), DataError, text) for vertices, text in NAMES),
)


# Memory and time


def test_a_packed_file_is_unpacked_only_as_far_as_memory_allows(tmp_path, monkeypatch):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b"1,2\n" * 250_000)  # 200 MB in 1 MB
    monkeypatch.setattr(memory, "free_memory", lambda: 300 * 2**20)
    message = r"bomb.csv.gz: the hypergraph of the first .* needs .* are free: read a"

    def refused():
        refuses(MemoryLimitError, message, read_hypergraph, path)

    assert peak_memory(refused)[0] < 2**25


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("h.csv", "1\n" * 40_000),
        ("h.csv", "".join(f"a{i},b{i}\n" for i in range(20_000))),
        ("h.hgr", "40000 9\n" + "1\n" * 40_000),
        ("h.json", json.dumps({"incidences": [{"edge": i, "node": f"v{i}"} for i in range(10_000)]})),
    ],
)
def test_a_file_is_refused_if_it_needs_more_than_is_free(name, text, write, monkeypatch):
    path = write(text, name)
    peak, _ = peak_memory(lambda: read_hypergraph(path))
    monkeypatch.setattr(memory, "free_memory", lambda: peak / 1.5)
    with pytest.raises(MemoryLimitError):
        read_hypergraph(path)
    monkeypatch.setattr(memory, "free_memory", lambda: 8 * peak)
    read_hypergraph(path)


def test_announced_vertices_take_memory_as_arrays_only(write, monkeypatch):
    path = write("50000 5000000\n" + "1 2\n" * 50_000, "h.hgr")
    peak, found = peak_memory(lambda: read_hypergraph(path))
    assert found.n_vertices == 5_000_000
    assert peak < 64 * 5_000_000 + 2**25
    monkeypatch.setattr(memory, "free_memory", lambda: 200 * 2**20)
    with pytest.raises(MemoryLimitError, match="line 1 announces 5000000 vertices, which needs 305 MiB, and 200 MiB"):
        read_hypergraph(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("h.json", "{" + ",".join(f'"{i}":1' for i in range(60_000)) + ',"59999":1}'),
        ("h.json", '{"incidences":[{' + ",".join(f'"{i}":1' for i in range(60_000)) + ',"59999":1}]}'),
        ("h.csv", " " * 500_000 + "\n1,2\n"),
        ("h.tsv", "\x0b" * 500_000),
        ("h.csv", "\u2028" * 200_000 + "1,2"),
        ("h.json", "\n" * 500_000 + "{"),
    ],
)
def test_time_grows_with_the_size_alone(name, text, write):
    path = write(text, name)
    start = time.process_time()
    with suppress(TableError):
        read_hypergraph(path)
    assert time.process_time() - start < 5  # quadratic: from half a minute to hours


def test_messages_are_one_line_whatever_names_hold(tmp_path):
    path = tmp_path / "a\x1b[2J\nb.csv"
    for text in ("edge,vertex\n1\n", "", "a\0b", 'a\tb\n"c"d\te\n'):
        path.write_text(text)
        with pytest.raises(TableError) as caught:
            read_hypergraph(path)
        assert str(caught.value).isprintable()
        assert r"a\x1b[2J\nb.csv: " in str(caught.value)
    path.write_text('"a\n\x1b",b\n"a\n\x1b",c\nd,e,"e\n"\n')
    hypergraph = read_hypergraph(path)
    for bad in (
        lambda: hypergraph.edge("x\n\x1b"),
        lambda: Hypergraph.from_edges([["x\n"]], vertices=["y"]),
        lambda: format_hgr(Hypergraph.from_dict({"\x1b": []})),
    ):
        with pytest.raises(BicliqueError) as caught:
            bad()
        assert str(caught.value).isprintable()
