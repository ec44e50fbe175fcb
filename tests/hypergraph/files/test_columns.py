"""Tables of memberships under names of their own, lists inside a column, and headers that nobody announced."""

import csv
import io
from contextlib import suppress
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biclique.exceptions import BicliqueError, ParameterError, TableError
from biclique.hypergraph import Hypergraph, as_hypergraph, read_hypergraph, write_hypergraph
from biclique.hypergraph.files.edge_list import Columns, parse_edge_list, suspect_header
from tests.calls import refuses

PAPERS = "paper,author,year\np1,ann,2020\np1,bob,2020\np2,ann,2021\np2,cy,2021\n"
EDGES = {"p1": ["ann", "bob"], "p2": ["ann", "cy"]}
NAMED = {"edge_column": "paper", "vertex_column": "author"}


# Tables, lists inside a column, and lines of vertices

LONG = {"x": ["a", "b"], "y": ["b"]}
AUTHORS = [["Ann", "Bob", "Cy"], ["Ann", "Dan"]]
LISTS = {"vertex_column": "authors", "separator": ";"}
BELOW = PAPERS.partition("\n")[2]
GAPS = "paper,author,year\np1,ann,\np3,,2020\n,dan,\np1,bob,1\n\n,,\np2,ann,\np2,cy,\n"
GAPLESS = {"p1": ["ann", "bob"], "p3": [], "p2": ["ann", "cy"]}
CITED = {**NAMED, "weight_column": "cited"}
CITED_PAPERS = "paper,author,cited\np1,ann,2.5\np1,bob,\np2,ann,3\np2,cy,3\n"
KNOWN = "edge,vertex,weight,cited\np1,ann,1,5\np2,ann,1,6\n"
CITED_LISTS = {**LISTS, "weight_column": "cited"}
LISTED = "title,authors,cited\nCuts,Ann;Bob,2\nHeat,Ann;Dan,\nCuts,Eve,2\nNone,,5\n"
TITLES = {"Cuts": ["Ann", "Bob", "Eve"], "Heat": ["Ann", "Dan"], "None": []}


def of(edges, weights=None, vertices=None):
    """Vertices are names between spaces, in their order."""
    return Hypergraph.from_dict(edges, weights, vertices=vertices and vertices.split())


EDGE_LISTS = [
    ("l.csv", "edge,vertex\nx,a\nx,b\n\ny,b\n", {}, LONG),
    ("l.csv", "Edge;Node\nx;a\nx;b\ny;b\n", {}, LONG),
    ("l.csv", b"\xef\xbb\xbf time ,vertex, edge\r\n1,a,x\r\n2, b ,x\r\n ,,\r\n3,b,y\r\n", {}, LONG),
    ("l.tsv", 'edge\tnode\tweight\tcount\nx\t"a"\t\t1\nx\tb\t1\t\ny\tb\t\t1.0\n', {}, LONG),
    ("l.csv", "\n \t\n\r\nedge;vertex\nx;a\nx;b\ny;b\n", {}, LONG),
    ("l.csv", "edge;vertex;note\rx;a;,,,,,,\rx;b;\ry;b;\r", {}, LONG),
    ("l.csv", "vertices,Edge_ID\na,x\nb,x\nb,y\n", {}, LONG),
    ("L.TSV", 'edge\tvertex\n"x"\ta\nx\tb\ny\tb\n', {}, LONG),
    ("l.csv", PAPERS, NAMED, EDGES),
    ("l.tsv", PAPERS.replace(",", "\t"), NAMED, EDGES),
    ("l.csv", PAPERS.replace(",", "|"), NAMED, EDGES),
    ("l.tsv", PAPERS, NAMED, EDGES),  # the named columns say that commas separate it
    ("l.csv", '\ufeff"paper","author","year"\r\n' + BELOW, NAMED, EDGES),
    ("l.csv", "\n\n" + PAPERS.replace(",", " , "), NAMED, EDGES),
    ("l.csv", 'paper,author,"t, y"\np1,ann,"a;b;c;d"\np1,bob,\np2,ann,"x\ny"\np2,cy,\n', NAMED, EDGES),
    ("l.csv", "year;author;paper;note,s\n1;ann;p1;,,,\n1;bob;p1;\n1;ann;p2;\n1;cy;p2;\n", NAMED, EDGES),
    ("l.csv", PAPERS, {"edge_column": 0, "vertex_column": 1}, EDGES),
    ("l.csv", BELOW, {"edge_column": 0, "vertex_column": 1, "header": False}, EDGES),
    ("l.csv", BELOW, {"edge_column": "0", "vertex_column": "1", "header": False}, EDGES),
    ("l.csv", "title,authors\nCuts,Ann;Bob;Cy\nHeat,Ann;Dan\n", LISTS, AUTHORS),
    ("l.csv", "title,authors\nCuts, Ann ; Bob;Cy;\nHeat,Ann;Dan;;\n", LISTS, AUTHORS),
    ("l.csv", "title;authors\nCuts;Ann,Bob,Cy\nHeat;Ann,Dan\n", {**LISTS, "separator": ","}, AUTHORS),
    ("l.csv", 'title,authors\n"Cuts, a","Ann, Bob, Cy"\nHeat,"Ann, Dan"\n', {**LISTS, "separator": ","}, AUTHORS),
    ("l.csv", "title,authors\nC,Ann and Bob and Cy\nH,Ann and Dan\n", {**LISTS, "separator": " and "}, AUTHORS),
    ("l.csv", "authors\nAnn;Bob;Cy\nAnn;Dan\n", LISTS, AUTHORS),  # one column only
    ("l.csv", "\ufeffauthors\r\nAnn;Bob;Cy\r\nAnn;Dan\r\n", LISTS, AUTHORS),
    ("l.csv", "3,1\n2\n\n1,1,2,,\n", {}, [[3, 1], [2], [1, 1, 2]]),
    ("l.tsv", "b\ta c\nd\t\n", {}, [["b", "a c"], ["d"]]),
    ("l.csv", "007,1\n1\n", {}, [["007", "1"], ["1"]]),
    ("l.csv", "1, -2\n+1\n", {}, [["1", "-2"], ["+1"]]),
    ("l.csv", '"a,b",c\n"x\ny"\n', {}, [["a,b", "c"], ["x\ny"]]),
    ("l.csv", b"\xef\xbb\xbf1,2\r\n3", {}, [[1, 2], [3]]),
    ("l.csv", f"{10**30},-5\n0\n", {}, [[10**30, -5], [0]]),
    ("l.csv", "edge,e\nvertex\n", {}, [["edge", "e"], ["vertex"]]),
    ("l.csv", "\n1;2\n3\n", {}, [[1, 2], [3]]),
    ("l.csv", " \r\n\t\r a;b \r\nc;d", {}, [["a", "b"], ["c", "d"]]),
    ("l.csv", "New York\nRome\n", {}, [["New York"], ["Rome"]]),
    ("l.csv", "paper,author\np,a\n", {}, [["paper", "author"], ["p", "a"]]),  # nothing tells it from names
    ("l.csv", "a b|c\nc|d\n", {"separator": "|"}, [["a b", "c"], ["c", "d"]]),
    ("l.csv", "x;y\na b|c\nc|d\n", {"separator": "|", "header": True}, [["a b", "c"], ["c", "d"]]),
    ("l.csv", "1 2 3\n 4   5 \n", {"separator": " "}, [[1, 2, 3], [4, 5]]),
    ("l.csv", "a;b\nc\n", {"separator": ","}, [["a;b"], ["c"]]),
    ("l.csv", PAPERS, {"edge_column": 0, "vertex_column": 1, "header": np.False_}, {"paper": ["author"], **EDGES}),
    ("l.csv", "edge,vertex\nx,a\nx,b\n", {"header": False}, [["edge", "vertex"], ["x", "a"], ["x", "b"]]),
    ("l.csv", "edge,vertex\nx,a\nx,b\n", {"header": True}, {"x": ["a", "b"]}),
    ("l.csv", "source,target\n1,2\n2,3\n", {"header": False}, [["source", "target"], ["1", "2"], ["2", "3"]]),
    ("l.csv", "source,target\n1,2\n2,3\n", {"header": True}, [[1, 2], [2, 3]]),
    ("l.csv", "club,who\nr,a\nr,b\ns,a\n", {"header": False}, [["club", "who"], ["r", "a"], ["r", "b"], ["s", "a"]]),
    ("l.csv", "edge,vertices\nCuts,Ann;Bob\n", {"separator": ";"}, {"Cuts": ["Ann", "Bob"]}),
    ("l.csv", "authors\nAnn;Ann;Bob\n", LISTS, [["Ann", "Ann", "Bob"]]),
    ("l.csv", "edge,author\np1,ann\np1,bob\np2,ann\np2,cy\n", {"vertex_column": "author"}, EDGES),
    # With named columns, weight and count of the table may mean anything.
    ("l.csv", "paper,author,weight,count\np1,ann,x,-1\np1,bob,2,many\np2,ann,3,\np2,cy,4,\n", NAMED, EDGES),
    ("l.csv", PAPERS + "p1,ann,2020\n", NAMED, {"p1": ["ann", "ann", "bob"], "p2": ["ann", "cy"]}),
    ("l.csv", GAPS, NAMED, of(GAPLESS, vertices="ann dan bob cy")),
    ("l.csv", CITED_PAPERS, CITED, of(EDGES, [2.5, 3])),
    ("l.csv", KNOWN, {"weight_column": "cited"}, of({"p1": ["ann"], "p2": ["ann"]}, [5, 6])),
    ("l.csv", LISTED, {"edge_column": "title", **CITED_LISTS}, of(TITLES, [2, 1, 5], "Ann Bob Dan Eve")),
    ("l.csv", LISTED, CITED_LISTS, Hypergraph.from_edges([["Ann", "Bob"], ["Ann", "Dan"], ["Eve"], []], [2, 1, 2, 5])),
]
"""Name and content of a file, options, and what is read: edges by number, edges by name, or a hypergraph."""


@pytest.mark.parametrize(("name", "content", "options", "edges"), EDGE_LISTS)
def test_edge_lists(name, content, options, edges, write):
    make = {dict: Hypergraph.from_dict, list: Hypergraph.from_edges}.get(type(edges), as_hypergraph)
    assert read_hypergraph(write(content, name), **options) == make(edges)


names = st.text("ab,;|\t 'é\"\n7", max_size=4).map(str.strip).filter(bool)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(names, names), min_size=1, max_size=8), st.sampled_from(",;\t|"))
def test_any_memberships_are_read_as_they_are(pairs, delimiter):
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows([("extra", "who", "what"), *(("", v, e) for e, v in pairs)])
    text = stream.getvalue()
    found = parse_edge_list(text, None, Columns(edge_column="what", vertex_column="who"))
    assert sorted((str(e), str(v)) for e, members in found.to_dict().items() for v in members) == sorted(pairs)


# What is wrong


MISSING_COLUMNS = [
    (
        {"edge_column": "papr", "vertex_column": "author"},
        r"edge_column \(--edge-column\) names column 'papr', which does not exist; columns: 'paper', 'author', "
        r"'year'\. Without a header, say --no-header",
    ),
    ({"edge_column": "paper", "vertex_column": 3}, r"names column 3, which does not exist; columns: 'paper'"),
    ({**NAMED, "header": False}, "'paper', which does not exist; columns: '0', '1'"),
    ({**NAMED, "weight_column": "w"}, r"weight_column \(--weight-column\) names column 'w', which does not exist"),
    ({"edge_column": "paper"}, "which column holds the vertices.*--vertex-column.*columns: 'paper', 'author'"),
    ({"vertex_column": "author"}, "needs the edges' column, --edge-column .*such as --separator ';'"),
]
BY_NUMBER = {"edge_column": 0, "vertex_column": 1, "header": False}
WEIGHT = 'paper,author,cited\np1,ann,1\np1,bob,"%s"\n'
NO_NUMBER = "line 3: the weight must be a finite number, got '%s'"
BAD_TABLES = [
    *((WEIGHT % cell, CITED, NO_NUMBER % cell) for cell in ("x", "nan", "1e999", "1,5")),
    (WEIGHT % 2, CITED, "line 3: edge 'p1' has weight 1 above and 2 here"),
    ("paper,author,year\np1,ann,\n,,2020\n", NAMED, "line 3: neither an edge nor a vertex"),
    ("authors\nAnn;;Bob\n", LISTS, "line 2: name 2 is empty"),
    ("authors\nAnn;Bob\nAnn;Dan\n", {}, "has semicolons inside.*--vertex-column authors --separator ';'"),
    ("ann\nbob;cy\ndan\n", {}, "line 2: .* has semicolons inside.*names, --separator ';'.* --separator ','"),
    ("a|b\nb|c|d\n", {}, r"has bars inside.*--separator '\|'"),
    (PAPERS.replace(",", "|"), {}, r"has bars inside.*--separator '\|'"),
    ("a,a,b\n1,2,3\n", {"edge_column": "a", "vertex_column": "b"}, "names column 'a', which appears 2 times: rename"),
    (PAPERS + "p3\n", NAMED, "line 6: 1 fields, the header has 3"),
    ("p1,ann\np2\n", BY_NUMBER, "line 2: 1 fields, the first line has 2"),
    ("only\n", {"header": True}, "there is nothing below the header"),
]


@pytest.mark.parametrize(
    ("content", "options", "message"), [*((PAPERS, *case) for case in MISSING_COLUMNS), *BAD_TABLES]
)
def test_tables_that_cannot_be_read(content, options, message, write):
    path = write(content)
    with pytest.raises(TableError, match=message) as caught:
        read_hypergraph(path, **options)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_column": "paper", "vertex_column": 0}, "must name different columns"),
        ({"edge_column": 1.5}, "edge_column must be the name of a column or its number from 0, got 1.5"),
        ({"edge_column": True}, "edge_column must be the name"),
        ({**NAMED, "separator": ""}, "separator must be the text between"),
        ({**NAMED, "separator": "\n"}, "separator must be the text between"),
        ({"header": "no"}, "header must be True or False"),
        ({"separator": " and "}, "separator must be one character between the vertices of a line"),
    ],
)
def test_bad_arguments(options, message, write):
    refuses(ParameterError, message, read_hypergraph, write(PAPERS), **options)


@pytest.mark.parametrize("ending", ["hif", "hgr", "json.gz"])
def test_columns_are_for_edge_lists(ending, tmp_path):
    path = tmp_path / f"h.{ending}"
    write_hypergraph(Hypergraph.from_edges([[1, 2]]), path)
    with pytest.raises(ParameterError, match=r"edge_column, separator: for edge lists \(\.csv, \.tsv\) only"):
        read_hypergraph(path, edge_column="paper", separator=";")


# Headers that nobody announced


@pytest.mark.parametrize(
    ("content", "reason", "options"),
    [
        (PAPERS, "with the word 'paper'", ("paper", "author")),
        ("author,paper\na,p\nb,p\n", "with the word 'author'", ("paper", "author")),
        ("x,y,z\nr,a,20\nr,b,3.5\n", r"above a column of numbers \('z'\)", ("x", "y")),
        ("z,x,y\n1,r,a\n2,r,b\n", r"above a column of numbers \('z'\)", ("x", "y")),
        (",x,y,z\n0,r,a,7\n1,r,b,\n", r"above a column of numbers \('z'\)", ("x", "y")),
        ("club,who\nr,a\nr,b\ns,a\n", "above columns that share no name", ("club", "who")),
        ("my club,who?\nr,a\nr,b\ns,a\n", "above columns that share no name", ("'my club'", r"'who\?'")),
        ("title,people\nA,x;y\nB,y;z\n", r"above lists with semicolons \('people'\)", ("title", "people", "';'")),
        ("source,target\nann,bob\nbob,cy\n", "with the word 'source'", "--header yes"),
        ("movie_id,actors\nm1,a,b,c\nm2,a\n", "with the word 'movie_id'", ("movie_id", "actors")),
        ("weight,p,q\n2,a,b\n1,b,c\n", "with the word 'weight'", ("p", "q")),
        ("a,b\n1,2\n", "above whole numbers", ("a", "b")),
    ],
)
def test_a_first_line_that_looks_like_a_header(content, reason, options, write):
    path = write(content)
    if isinstance(options, tuple):
        names = ("--edge-column", "--vertex-column", "--separator")
        options = " ".join(f"{name} {value}" for name, value in zip(names, options, strict=False))
    pattern = rf"line 1 looks like a header {reason}, .* as in: biclique hypergraph info \S+papers.csv {options} \("
    with pytest.raises(TableError, match=pattern) as caught:
        read_hypergraph(path)
    assert "\n" not in str(caught.value)
    assert "--no-header" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        "ann,bob\nbob,cy\ncy,dan\n",
        "ann,bob\ncy,dan\neve,fay\n",  # three edges that share nothing
        "ann,bob\ncy,dan\ncy,eve\n",  # too few lines to tell
        "ann,bob,cy\ndan,eve\ndan,fay,gil,hal\ndan,eve\n",  # edges of several sizes
        "ann,bob\ncy,dan\ndan,eve\ncy,eve\n",  # dan stands in both columns
        "p1,ann\np1,bob\np2,ann\n",  # the first line shares its names
        "gray,wolf\na,b\nc,d\ne,f\ne,g\n",  # many lines are alone, the first too
        "Smith,1\n2,3\nSmith,4\n",
        "sp|P1|A,sp|P2|B\nsp|P2|B,sp|P3|C\n",
        "edge,case\nedge,node\nloop,edge\n",
        "rome\nparis\nrome\n",
    ],
)
def test_ordinary_edge_lists_are_no_headers(content, write):
    found = read_hypergraph(write(content))
    assert [sorted(edge) for edge in found.edges()] == [sorted(line.split(",")) for line in content.splitlines()]


def test_random_edge_lists_hardly_ever_look_like_a_header():
    rng = np.random.default_rng(0)

    for size, (n, n_edges) in product((2, 3), ((10, 20), (100, 30), (300, 200))):
        for _ in range(50):
            edges = [tuple(f"v{v}" for v in rng.choice(n, size, replace=False)) for _ in range(n_edges)]
            assert suspect_header(edges) is None


@pytest.mark.parametrize(("content", "inside"), [("a,b\nb,c\n", "commas"), ("edge;vertex\na;b\n", "semicolons")])
def test_other_delimiters_between_tabs(content, inside, write):
    with pytest.raises(TableError, match=rf"between tabs, but has {inside} inside.* --separator '\\t'"):
        read_hypergraph(write(content, "papers.tsv"))


cells = st.sampled_from(["", "a", "1", "007", "a;b", ";", "1e999", " ", '"', '"x"', "edge", "paper", "weight", "|"])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(cells, min_size=1, max_size=4), max_size=6),
    st.sampled_from([None, "edge", "paper", 0, "0"]),
    st.sampled_from([None, "a", "vertex", 1, "1"]),
    st.sampled_from([None, "weight", 2]),
    st.sampled_from([None, ";", " ", ", ", "|", "a"]),
    st.sampled_from([None, True, False]),
)
def test_any_table_with_any_columns(rows, edge, vertex, weight, separator, header):
    with suppress(BicliqueError):
        columns = Columns(edge, vertex, weight, separator, header)
        assert isinstance(parse_edge_list("\n".join(map(",".join, rows)), None, columns), Hypergraph)
