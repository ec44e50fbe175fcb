"""Whatever the bytes are, a reader returns a hypergraph or raises an error of the package, and nothing else."""

import gzip
import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from biclique.exceptions import BicliqueError
from biclique.hypergraph.files.by_ending import READERS, read_hypergraph
from biclique.hypergraph.files.edge_list import format_edge_list
from biclique.hypergraph.files.hgr import format_hgr
from biclique.hypergraph.files.hif import format_hif
from biclique.hypergraph.hypergraph import Hypergraph

HYPERGRAPH = Hypergraph.from_dict(
    {"ä": ["b", "a", "b"], "two": ["a", "c", "b"], "f": ["c"]}, [1.5, 1, 2e-7], vertices=["c", "b", "a", "alone"]
)
VALID = {
    ".json": format_hif(HYPERGRAPH),
    ".hif": json.dumps(
        {
            "network-type": "directed",
            "metadata": {"a": [1, None]},
            "nodes": [{"node": 1, "weight": 2, "attrs": {"x": 1}}],
            "incidences": [{"edge": "e", "node": 1, "direction": "head", "weight": 2.5, "attrs": {}}],
            "edges": [{"edge": "e", "attrs": {"weight": 2}}],
        }
    ),
    ".hgr": format_hgr(HYPERGRAPH).replace("3 4 1\n", "%x\n3 4 11\n") + "1\n2.5\n0\n3\n",
    ".csv": format_edge_list(HYPERGRAPH).replace("two", '"tw,o"'),
    ".tsv": "1\t2\t3\n2\n\n10\t-4\t\n",
}
ENDINGS = tuple(READERS)


@pytest.fixture(scope="module")
def survives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")

    def survives(ending, content):
        path = folder / f"file{ending}"
        path.write_bytes(content)
        with suppress(BicliqueError):
            assert isinstance(read_hypergraph(path), Hypergraph)

    return survives


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_valid_files_are_valid(ending, tmp_path):
    path = tmp_path / f"file{ending}"
    path.write_text(VALID[ending], encoding="utf-8")
    assert read_hypergraph(path).n_edges >= 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncations(ending, survives):
    content = VALID[ending].encode()
    for end in range(len(content)):
        survives(ending, content[:end])


def test_truncated_and_changed_gzip(survives):
    content = gzip.compress(VALID[".hif"].encode())
    for place in range(len(content)):
        survives(".json.gz", content[:place])
        survives(".json.gz", content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])


@pytest.mark.parametrize("ending", ENDINGS)
def test_changed_bytes(ending, survives):
    """One to four bytes replaced, removed, or repeated; by themselves or by bytes that mean something."""
    rng = np.random.default_rng(0)
    special = np.frombuffer(b'{}[]",:%;\t\n\r 0123456789-+.eENn_\x00\xff\xc3x', dtype=np.uint8)
    original = VALID[ending].encode()
    for _ in range(300):
        content = bytearray(original)
        for _ in range(rng.integers(1, 5)):
            place = int(rng.integers(len(content) + 1))
            byte = int(rng.integers(256)) if rng.random() < 0.3 else int(rng.choice(special))
            step = rng.integers(3)
            if step == 0:
                content[place : place + 1] = bytes([byte])
            elif step == 1:
                content.insert(place, byte)
            else:
                stop = place + int(rng.integers(1, 12))
                content[place:stop] = content[place:stop] * int(rng.integers(0, 3))
        survives(ending, bytes(content))


@pytest.mark.parametrize("ending", ENDINGS)
def test_random_bytes(ending, survives):
    rng = np.random.default_rng(1)
    for size in range(0, 200, 3):
        survives(ending, rng.bytes(size))
        survives(ending, bytes(rng.choice(np.frombuffer(b"0123456789 ,\t\n.-%", dtype=np.uint8), size)))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ENDINGS), st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@example(".json", b"[" * 10_000)
@example(".json", b'{"incidences": [{"edge": 1, "node": "\\ud800"}]}')
@example(".hgr", b"1 1000000\n1")
@example(".csv", b"\r")
@example(".csv", b'edge,vertex\n"')
def test_any_bytes(survives, ending, content):
    survives(ending, content)


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(10**400))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
items = st.dictionaries(
    st.sampled_from(["edge", "node", "weight", "direction", "attrs", "attr", "x"]),
    st.one_of(scalars, st.just("head"), st.just({}), values),
    max_size=5,
)
documents = st.dictionaries(
    st.sampled_from(["incidences", "nodes", "edges", "metadata", "network-type"]),
    st.one_of(st.lists(items, max_size=4), st.sampled_from(["asc", "directed", {}]), values),
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(values, documents))
def test_any_json(survives, value):
    survives(".json", json.dumps(value).encode())


cells = st.sampled_from(
    ["", "a", "1", "007", "-1", "1e999", "nan", " ", '"', '"x"', "edge", "vertex", "weight", "count"]
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["", "edge,vertex\n", "edge,node,weight\n", "vertex,edge,count,weight\n", "edge,vertex,other\n"]),
    st.lists(st.lists(cells, min_size=1, max_size=5), max_size=6),
)
def test_any_table(survives, header, rows):
    survives(".csv", (header + "\n".join(map(",".join, rows))).encode())


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=3),
    st.lists(st.lists(st.sampled_from(["1", "2", "3", "0", "%", "-1", "1.5", "x", "1e5"]), max_size=4), max_size=6),
)
def test_any_hgr(survives, header, rows):
    lines = [" ".join(map(str, header)), *map(" ".join, rows)]
    survives(".hgr", "\n".join(lines).encode())
