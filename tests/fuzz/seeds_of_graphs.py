"""Hypergraphs (HIF, hMetis, edge lists), the paper's data sets, and records of reproductions.

Some seeds are wrong by meaning before their bytes are damaged: arrays of other types, names that a terminal obeys,
MATLAB variables that are damaged inside their compression.
"""

import gzip
import io
import json
import random
import struct
import tempfile
import zlib
from dataclasses import asdict
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.io import savemat

from biclique.datasets import load_hopkins155, load_ovarian, load_spine, paper
from biclique.exceptions import BicliqueError
from biclique.hypergraph import read_hypergraph
from biclique.reproduce.cells import QUICK, Cell, Records
from tests.fuzz.campaign import Reader
from tests.fuzz.mutate import KINDS, damaged, npy_bytes, zipped

CELL = Cell("iris", "iris", "gaussian_ours")
SPOILT = 60
"""MATLAB files that are damaged inside their compression."""


def each(calls):
    """All of them: an error that is not ours, or not one printable line, is raised at once, others if all have one."""
    errors = []
    for call in calls:
        try:
            call()
        except BicliqueError as error:
            if not str(error).isprintable():
                raise
            errors.append(error)
    if len(errors) == len(calls):
        raise errors[0]


def hif():
    small = {
        "network-type": "undirected",
        "metadata": {"name": "x"},
        "incidences": [{"edge": 1, "node": "a"}, {"edge": 1, "node": 2, "weight": 2}, {"edge": "e", "node": "a"}],
        "nodes": [{"node": "a", "weight": 1.5}, {"node": "alone"}],
        "edges": [{"edge": 1, "weight": 2.5}, {"edge": "e", "attrs": {"weight": 3}}, {"edge": "empty"}],
    }
    directed = {"network-type": "directed", "incidences": [{"edge": 0, "node": 1, "direction": "head"}]}
    return [json.dumps(document, indent=1).encode() for document in (small, directed, {"incidences": []})]


def hgr():
    weights = b"% weights\n2 3 11\n5 1 2\n7 2 3\n1\n2\n3\n"
    return [b"3 4\n1 2\n2 3 4\n1 4\n", weights, b"2 1000000\r\n1 2\r\n3 3\r\n", b"0 5\n"]


def edges():
    return [
        b"a,b,c\nb,c\nd,a\n",
        b"1;2;3\n2;3\n",
        b"edge,vertex,weight,count\ne1,a,2,1\ne1,b,,3\n,c,,\ne2,,1,\n",
        b'edge\tvertex\n1\t"two\nlines"\n1\tb\n2\tb\n',
        b"paper,author,year\np1,Ann,2001\np1,Bob,2001\np2,Cy,2002\np3,Cy,2002\n",
        b"title,authors\nCuts,Ann;Bob;Cy\nGraphs,Bob;Dan\n",
        "\ufeffé,ü\nü,\U0001f600\n".encode(),
    ]


def packed_edges():
    """Packed twice too, several in one, and one that unpacks to a thousand times its size."""
    lists = edges()
    packed = [gzip.compress(content, mtime=0) for content in (*lists, *map(gzip.compress, lists), b"1,2\n" * 250_000)]
    return [*packed, packed[0] + packed[1], packed[0] + bytes(10), *lists[:2]]


WAYS = [
    {},
    {"edge_column": "paper", "vertex_column": "author"},
    {"vertex_column": "authors", "separator": ";"},
    {"edge_column": 0, "vertex_column": 1, "header": False},
    {"separator": " "},
    {"header": True},
]


def read_edges(path):
    """As an edge list in every way."""
    tab = path.with_suffix(".tsv")
    tab.write_bytes(path.read_bytes())
    each([partial(read_hypergraph, file, **way) for file in (path, tab) for way in WAYS])


# Archives


def _zips(members):
    """Whole archives of every compression, then ones with an array of another kind, and with names that are odd."""
    odd = (np.array(["a"]), np.array([None]), np.ones(3) * 1j, np.float64(1), np.ones((0, 5)))
    found = [zipped(members, kind) for kind in KINDS]
    found += [zipped({**members, name: npy_bytes(array)}) for name in members for array in odd]
    return [*found, zipped({f"a\x1b\n/{name}": content for name, content in members.items()})]


def _mat(seed, *, packed):
    draw = np.random.default_rng(seed)
    stream = io.BytesIO()
    tracks = {"x": draw.standard_normal((3, 6, 4)), "s": np.array([[1], [1], [2], [2], [2], [1]]), "more": ["text"]}
    savemat(stream, tracks, do_compression=packed)
    return stream.getvalue()


def _packed_again(content, draw):
    """A MATLAB file whose variables are damaged inside their compression."""
    parts, place = [content[:128]], 128
    while place + 8 <= len(content):
        kind, size = struct.unpack_from("<II", content, place)
        part = zlib.decompress(content[place + 8 : place + 8 + size])
        part = zlib.compress(damaged(part, part, draw))
        parts.append(struct.pack("<II", kind, len(part)) + part)
        place += 8 + size
    return b"".join(parts)


def hopkins_arrays():
    members = {f"{name}/X.npy": npy_bytes(np.ones((6, 4)) * number) for number, name in enumerate(["arm", "cars1"])}
    members |= {f"{name}/y.npy": npy_bytes(np.array([1, 1, 2, 2, 2, 1], dtype=np.int8)) for name in ("arm", "cars1")}
    return _zips(members)


def hopkins_archive():
    draw = random.Random("hopkins-zip")
    names = ("arm", "cars1", "dancing")
    members = {f"Hopkins155/{name}/{name}_truth.mat": _mat(i, packed=i == 1) for i, name in enumerate(names)} | {
        "Hopkins155/readme.txt": b"text"
    }
    again = [{**members, "a/arm/arm_truth.mat": _packed_again(_mat(1, packed=True), draw)} for _ in range(SPOILT)]
    return [*_zips(members), *map(zipped, again)]


def hopkins_folder():
    draw = random.Random("hopkins-folder")
    plain, packed = _mat(0, packed=False), _mat(1, packed=True)
    contents = [plain, packed, b"", *(_packed_again(packed, draw) for _ in range(SPOILT))]
    return [{"arm/arm_truth.mat": content} for content in contents]


def unchecked(load, **options):
    """Read made-up data, which have no published checksum; and then with the checksum, which refuses them."""

    def read(path):
        home = path if path.is_dir() and path.name != "Hopkins155" else path.parent
        with mock.patch.object(paper, "DIGESTS", dict.fromkeys(paper.DIGESTS)):
            found = load(home, verbose=False, **options)
            for sequence in found if load is load_hopkins155 else ():
                if not np.isfinite(sequence.target).all():
                    raise AssertionError
        return load(home, verbose=False, **options)

    return read


def spine():
    rows = "63.03 22.55 39.61 40.48 98.67 -0.25 AB\n39.06 10.06 25.02 29 114.41 4.56 NO\n1 2 3 4 5 6 NO\n"
    table = ",".join([*paper.SPINE_FEATURES, "label_3c", "label_2c"]) + "\n1,2,3,4,5,6,DH,AB\n6,5,4,3,2,1,NO,NO\n"
    pair = {"column_2C.dat": rows.encode(), "column_3C.dat": rows.replace("AB", "SL").encode()}
    return [pair, {**pair, "spine.csv": table.encode()}]


def ovarian_arrays():
    members = {"X.npy": npy_bytes(np.ones((4, 100), dtype=np.float32)), "y.npy": npy_bytes(np.array([0, 1, 1, 0]))}
    return [{"ovarian100.npz": content} for content in _zips(members)]


def ovarian():
    row = " ".join(["0.5"] * 100)
    table = f"{row} 1 0\n{row}\t0,1\n{row};1;0\n".encode()
    both = [{**files, "ovarian_dataset.dat": table} for files in ovarian_arrays()]
    return both + [{"ovarian_dataset.dat": table}] * 5


# Records


def records():
    with tempfile.TemporaryDirectory() as folder:
        written = Records(Path(folder), QUICK, resume=True)
        written.put(CELL, [{"order": 2, "gamma": 1.0, "error": 0.25, "deviation": 0.0, "seconds": 1.0, "k": 3}])
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        return [{str(file.relative_to(folder)): file.read_bytes() for file in files}]


def read_record(path):
    """What is believed must be what was written."""
    found = Records(path, QUICK, resume=True)
    results = found.get(CELL)
    if results is not None and results[0]["error"] != 0.25:
        raise AssertionError(asdict(CELL))
    found.versions([CELL])


GRAPHS = {
    "hif": Reader(hif, read_hypergraph, "graph.json"),
    "hgr": Reader(hgr, read_hypergraph, "graph.hgr"),
    "edges": Reader(edges, read_edges, "graph.csv"),
    "edges-gz": Reader(packed_edges, read_hypergraph, "graph.csv.gz"),
    "hopkins": Reader(hopkins_archive, unchecked(load_hopkins155), "Hopkins155.zip"),
    "hopkins-npz": Reader(hopkins_arrays, unchecked(load_hopkins155), "hopkins155.npz"),
    "hopkins-folder": Reader(hopkins_folder, unchecked(load_hopkins155), "Hopkins155", folder=True),
    "spine": Reader(spine, unchecked(load_spine), "spine", folder=True),
    "ovarian": Reader(ovarian, unchecked(load_ovarian), "ovarian", folder=True),
    "records": Reader(records, read_record, "out", folder=True),
}
