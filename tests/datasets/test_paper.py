"""The paper's data: tiny made-up files in the original layouts, checks, downloads; the real data where they lie."""

from __future__ import annotations

import functools
import http.server
import io
import os
import pickle
import re
import struct
import threading
import time
import warnings
import zipfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from biclique.datasets import data_home, load_hopkins155, load_iris, load_ovarian, load_spine, paper
from biclique.exceptions import DataError, ParameterError
from tests.calls import peak_memory, refuses

REAL = Path(os.environ.get("BICLIQUE_DATA") or "no folder")


@pytest.fixture
def unchecked(monkeypatch):
    """Made-up data have no published checksum."""
    monkeypatch.setattr(paper, "DIGESTS", dict.fromkeys(paper.DIGESTS))


def write_spine(folder):
    rows = ["63.03 22.55 39.61 40.48 98.67 -0.25", "39.06 10.06 25.02 29 114.41 4.56", "1 2 3 4 5 6"]
    for file, classes in (("column_2C.dat", ["AB", "AB", "NO"]), ("column_3C.dat", ["DH", "SL", "NO"])):
        (folder / file).write_text("\n".join(f"{row} {name}" for row, name in zip(rows, classes, strict=True)))


def tracks(points=6, frames=3, seed=0):
    random = np.random.default_rng(seed)
    x = np.concatenate([random.standard_normal((2, points, frames)), np.ones((1, points, frames))])
    return {"x": x, "s": np.array([[1], [1], [2], [2], [2], [1]]), "frames": frames}


def mat_bytes(variables, **options):
    stream = io.BytesIO()
    savemat(stream, variables, **options)
    return stream.getvalue()


def npz_bytes(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def zip_bytes(members, compression=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


TRUTH = "Hopkins155/{0}/{0}_truth.mat".format
ARM = TRUTH("arm")


def write_hopkins(folder, compression=zipfile.ZIP_STORED):
    members = {TRUTH(name): mat_bytes(tracks(seed=seed)) for seed, name in enumerate(["arm", "cars1", "dancing"])}
    members |= {"../../escape_truth.mat": b"x", "Hopkins155/readme.txt": "text"}
    (folder / "Hopkins155.zip").write_bytes(zip_bytes(members, compression))


def arrays_of(sequences):
    return {f"{s.name}/X": s.data for s in sequences} | {f"{s.name}/y": s.target + 1 for s in sequences}


def first_sequence(home):
    return next(iter(load_hopkins155(home)))


def test_iris():
    assert load_iris().data.shape == (150, 4)


def test_spine_in_the_original_layout(tmp_path, unchecked):
    write_spine(tmp_path)
    two, three = load_spine(tmp_path), load_spine(tmp_path, classes=3)
    assert two.data.shape == (3, 6)
    assert two.data[0, 5] == -0.25
    assert two.target_names[two.target].tolist() == ["AB", "AB", "NO"]
    assert three.target_names[three.target].tolist() == ["DH", "SL", "NO"]
    header = ",".join([*paper.SPINE_FEATURES, "label_3c", "label_2c"])
    (tmp_path / "spine.csv").write_text(f"{header}\n1,2,3,4,5,6,DH,AB\n6,5,4,3,2,1,NO,NO\n")
    assert load_spine(tmp_path).data[1].tolist() == [6, 5, 4, 3, 2, 1]


def test_ovarian_in_both_layouts(tmp_path, unchecked):
    X = np.random.default_rng(0).standard_normal((4, 100)).round(3)
    table = np.column_stack([X, [1, 0, 0, 1], [0, 1, 1, 0]])
    (tmp_path / "ovarian_dataset.dat").write_text("\n".join(" ".join(map(str, row)) for row in table))
    bunch = load_ovarian(tmp_path)
    np.testing.assert_array_equal(bunch.data, X)
    assert bunch.target.tolist() == [1, 0, 0, 1]
    np.savez(tmp_path / "ovarian4000.npz", X=np.ones((2, 4000), dtype=np.float32), y=[0, 1])
    assert load_ovarian(tmp_path, features=4000).data.shape == (2, 4000)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_hopkins_from_the_archive_the_folder_and_arrays(tmp_path, unchecked, compression):
    write_hopkins(tmp_path, compression)
    archive = load_hopkins155(tmp_path)
    assert archive.names == ["arm", "cars1"]
    assert len(archive) == 2
    first = next(iter(archive))
    x = tracks()["x"]
    assert first.data.shape == (6, 6)
    np.testing.assert_array_equal(first.data[0], x[:2, 0].T.ravel())  # x and y of each frame
    assert first.target.tolist() == [0, 0, 1, 1, 1, 0]
    assert first.n_clusters == 2
    assert not (tmp_path.parent / "escape_truth.mat").exists()
    unpacked = tmp_path / "unpacked"
    for seed, name in enumerate(["arm", "cars1"]):
        (unpacked / TRUTH(name)).parent.mkdir(parents=True)
        (unpacked / TRUTH(name)).write_bytes(mat_bytes(tracks(seed=seed), do_compression=True))
    assert load_hopkins155(unpacked).digest() == archive.digest()
    arrays = tmp_path / "arrays"
    arrays.mkdir()
    np.savez(arrays / "hopkins155.npz", **arrays_of(archive))
    assert load_hopkins155(arrays).digest() == archive.digest()
    refuses(ParameterError, "no sequence 'x'", archive.sequence, "x")


def npy_header(header):
    """An array of 1600 zero bytes below such a header."""
    text = header.encode().ljust(4000) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + bytes(1600)


def packed_element(n_bytes):
    """A compressed MATLAB variable x of the right shape whose numbers unpack to many bytes."""
    plain = mat_bytes({"x": np.zeros((3, 6, 3))})[128:]
    header = plain[8 : plain.index(b"x\0") + 4]  # flags, shape and name
    data = struct.pack("<II", 9, n_bytes) + bytes(n_bytes)
    packed = zlib.compress(struct.pack("<II", 14, len(header) + len(data)) + header + data, 9)
    return struct.pack("<II", 15, len(packed)) + packed


def refused(load, folder):
    """The message: one printable line, and no warning beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError) as caught:
            load(folder)
    assert str(caught.value).isprintable()
    return str(caught.value)


OBJECTS = npz_bytes(X=np.array([object()], dtype=object), y=[1])


TRACKS = mat_bytes(tracks())
PACKED = mat_bytes(tracks(), do_compression=True)
NO_TRACKS = [
    b"",
    b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + bytes(400),  # HDF5
    mat_bytes({"x": np.array([["a", "b"]], dtype=object), "s": np.ones(2)}),
    mat_bytes({"x": sparse.eye_array(3).tocsc(), "s": np.ones(3)}),
    mat_bytes({"x": np.ones((3, 2, 2)) * 1j, "s": np.ones(2)}),
    mat_bytes({"x": "text", "s": np.ones(2)}),
    mat_bytes({"s": np.ones(2)}),
    TRACKS + TRACKS[128:],  # each twice
    TRACKS[:300],
    PACKED[:-30],
]
HEADERS = [
    npy_header("{'descr': '<U9', 'fortran_order': False, 'shape': (2,)}"),
    npy_header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,)}"),
    npy_header("(" * 3000),
]


@pytest.mark.parametrize(
    ("files", "load", "message"),
    [
        ({"spine.csv": b"a,b\n1,2\n"}, load_spine, "its columns must be"),
        ({"column_2C.dat": b"1 2 3 4 5 6 AB\n1 2", "column_3C.dat": b"1 2"}, load_spine, "same number of fields"),
        ({"column_2C.dat": b"\xff\xfe", "column_3C.dat": b"1 2"}, load_spine, "cannot be read"),
        ({"ovarian_dataset.dat": b"1 2 3\n4 5 6\n"}, load_ovarian, "102 columns"),
        ({"ovarian_dataset.dat": b"1 2 x\n4 5 6\n"}, load_ovarian, "could not convert"),
        ({"Hopkins155.zip": b"PK nonsense"}, load_hopkins155, "not a complete archive"),
        ({"hopkins155.npz": b"nonsense"}, load_hopkins155, "not a complete archive"),
        ({"column_2C.dat": b"1 2 3\n4 5 6\n", "column_3C.dat": b"1 2\n4 5\n"}, load_spine, "six numbers and a class"),
        ({"ovarian_dataset.dat": b"1 " * (paper.LARGEST_TEXT // 2 + 1)}, load_ovarian, "more than the published data"),
        ({"ovarian100.npz": OBJECTS}, load_ovarian, "Object arrays cannot be loaded"),  # nothing is unpickled
        ({"ovarian100.npz": pickle.dumps({"X": 1})}, load_ovarian, "not the expected file"),
        ({"ovarian100.npz": npz_bytes(X=np.ones((3, 100)) * 1j, y=np.ones(3))}, load_ovarian, "real numbers"),
        ({"ovarian100.npz": npz_bytes(X=np.ones((3, 100)), y=np.ones(2))}, load_ovarian, "X must be a table and y"),
        ({ARM: b"nonsense"}, first_sequence, "not a readable MATLAB file"),
        ({ARM: mat_bytes({"x": np.ones((3, 4)), "s": np.ones(4)})}, first_sequence, "shape"),
        ({"Hopkins155/arm/arm.mat": b""}, load_hopkins155, "no sequence"),
        ({"Hopkins155.zip": zip_bytes({"a\n\x1b[2J/" + ARM: b""})}, first_sequence, r"a\\n\\x1b\[2J/Hopkins155/arm"),
        ({"Hopkins155.zip": zip_bytes({ARM: TRACKS}, zipfile.ZIP_LZMA)}, first_sequence, "kind of compression"),
        *(({"Hopkins155.zip": zip_bytes({ARM: content})}, first_sequence, "") for content in NO_TRACKS),
        *(({"ovarian100.npz": zip_bytes({"X.npy": h, "y.npy": h})}, load_ovarian, "") for h in HEADERS),
        *(({"hopkins155.npz": zip_bytes({"a/X.npy": h, "a/y.npy": h})}, first_sequence, "") for h in HEADERS),
    ],
)
def test_damaged_files_are_refused(tmp_path, unchecked, files, load, message):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert re.search(message, refused(load, tmp_path))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def serving(handler):
    """The address of a server of this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}/"
        finally:
            running.shutdown()
            thread.join()


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    with serving(functools.partial(Quiet, directory=str(folder))) as url:
        yield folder, url


def test_missing_data_are_fetched_once(tmp_path, server, monkeypatch, unchecked, capsys):
    folder, url = server
    write_spine(folder)
    monkeypatch.setattr(paper, "SPINE_URL", url)
    home = tmp_path / "home"
    assert load_spine(home).data.shape == (3, 6)
    assert "fetching" in capsys.readouterr().err
    for file in folder.iterdir():
        file.unlink()
    assert load_spine(home, verbose=False).data.shape == (3, 6)
    assert sorted(p.name for p in home.iterdir()) == ["column_2C.dat", "column_3C.dat"]


def test_a_failed_download_says_what_to_put_where(tmp_path, server, monkeypatch):
    _, url = server
    monkeypatch.setattr(paper, "SPINE_URL", url)
    monkeypatch.setattr(paper, "OVARIAN_URL", url + "none.dat")
    monkeypatch.setattr(paper, "HOPKINS_URL", "http://127.0.0.1:9/none.zip")
    files = {load_spine: "spine.csv", load_ovarian: "ovarian100.npz", load_hopkins155: "hopkins155.npz"}
    for load, file in files.items():
        refuses(DataError, f"could not be fetched.*put {file}.*BICLIQUE_DATA", load, tmp_path / "home", verbose=False)
    assert not any((tmp_path / "home").iterdir())
    refuses(DataError, r"ovariancancer.*numpy\.savez", load_ovarian, tmp_path / "home", features=4000)


def test_a_wrong_download_does_not_stay(tmp_path, server, monkeypatch):
    folder, url = server
    write_spine(folder)
    (folder / "Hopkins155.zip").write_text("<html>moved</html>")
    monkeypatch.setattr(paper, "SPINE_URL", url)
    monkeypatch.setattr(paper, "HOPKINS_URL", url + "Hopkins155.zip")
    home = tmp_path / "home"
    refuses(DataError, "not the published spine data", load_spine, home, verbose=False)
    refuses(DataError, "not a complete archive", load_hopkins155, home, verbose=False)
    assert not any(home.iterdir())


def test_archives_that_are_damaged_inside_or_too_large(tmp_path, unchecked, monkeypatch):
    write_hopkins(tmp_path)
    path = tmp_path / "Hopkins155.zip"
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    refuses(DataError, "cannot be read|not a readable", lambda: list(load_hopkins155(tmp_path)))
    np.savez(tmp_path / "ovarian100.npz", X=np.ones((3, 100)), y=np.ones(3))
    monkeypatch.setattr("biclique.datasets.home.LARGEST_MEMBER", 1000)
    refuses(DataError, "more than the published data have", load_ovarian, tmp_path)
    write_hopkins(tmp_path)
    monkeypatch.setattr(paper, "LARGEST_SEQUENCES", 1000)
    refuses(DataError, "more than the published data have", load_hopkins155, tmp_path)


def test_where_data_lie(tmp_path, monkeypatch):
    monkeypatch.setenv("BICLIQUE_DATA", str(tmp_path))
    assert data_home() == tmp_path
    assert data_home("other") == Path("other")
    monkeypatch.delenv("BICLIQUE_DATA")
    assert data_home() == Path.home() / ".cache" / "biclique"
    (tmp_path / "file").write_text("")
    refuses(DataError, "must be a folder", data_home, tmp_path / "file")
    refuses(DataError, "name of a folder", data_home, 5)
    refuses(ParameterError, "classes must be", load_spine, tmp_path, classes=4)
    refuses(ParameterError, "features must be", load_ovarian, tmp_path, features=5)


@pytest.mark.skipif(not (REAL / "hopkins155.npz").exists(), reason="the paper's data are not in BICLIQUE_DATA")
def test_the_real_data():
    spine, ovarian = load_spine(REAL), load_ovarian(REAL)
    assert (spine.data.shape, np.bincount(spine.target).tolist()) == ((310, 6), [210, 100])
    assert (ovarian.data.shape, np.bincount(ovarian.target).tolist()) == ((216, 100), [95, 121])
    assert load_ovarian(REAL, features=4000).data.shape == (216, 4000)
    sequences = load_hopkins155(REAL)
    assert len(sequences) == 155
    counts = [(len(s.data), s.n_clusters) for s in sequences]
    assert sum(n for n, _ in counts) == 45_856
    assert [k for _, k in counts].count(2) == 120


# Damage, on purpose too


SHAPE = struct.pack("<III", 3, 6, 3)
LARGER_SHAPE = struct.pack("<III", 3, 2**14, 2**14)
VALUES = npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}")
MANY_VALUES = npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 10000000)}")


def one_sequence(content):
    return zip_bytes({ARM: content})


def smaller_than_it_is(archive, size):
    """An archive that announces 1000 bytes for a member of this size."""
    return archive.replace(struct.pack("<I", size), struct.pack("<I", 1000))


@pytest.mark.parametrize(
    ("make", "message", "most"),
    [
        (lambda: one_sequence(mat_bytes({"s": np.ones(6)}) + packed_element(2**28)), "more than the published", 2**26),
        (lambda: one_sequence(TRACKS.replace(SHAPE, LARGER_SHAPE)), "more than the published data have", 2**24),
        (lambda: smaller_than_it_is(one_sequence(bytes(2**27)), 2**27), "", 2**24),
        # memory is asked for, and never touched
        (lambda: zip_bytes({"X.npy": MANY_VALUES, "y.npy": VALUES}), "not the expected file", 2**28),
    ],
)
def test_memory_is_bounded_whatever_files_announce(tmp_path, unchecked, make, message, most):
    content = make()
    name, load = ("ovarian100.npz", load_ovarian) if b"X.npy" in content else ("Hopkins155.zip", first_sequence)
    (tmp_path / name).write_bytes(content)
    peak, found = peak_memory(lambda: refused(load, tmp_path))
    assert message in found
    assert peak < most


def test_one_changed_number_of_one_sequence_is_noticed(tmp_path, monkeypatch):
    write_hopkins(tmp_path)
    right = paper.Hopkins155(tmp_path / "Hopkins155.zip").digest()
    monkeypatch.setitem(paper.DIGESTS, "hopkins155", right)
    content = arrays_of(load_hopkins155(tmp_path))
    np.savez(tmp_path / "hopkins155.npz", **content)
    assert len(load_hopkins155(tmp_path)) == 2
    content["cars1/X"][3, 2] += 1e-9
    np.savez(tmp_path / "hopkins155.npz", **content)
    refuses(DataError, "not the published Hopkins155 data", load_hopkins155, tmp_path)


class Drip(Quiet):
    """A server that redirects, or sends a byte at a time."""

    def do_GET(self):
        if self.path == "/away.zip":
            self.send_response(302)
            self.send_header("Location", "/slow.zip")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        with suppress(OSError):
            for _ in range(1000):
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.02)


def test_downloads_that_take_too_long_or_lead_to_http(tmp_path, monkeypatch):
    monkeypatch.setattr("biclique.datasets.home.MOST_SECONDS", 0.3)
    with serving(Drip) as url:
        for file, reason in (("slow.zip", "in 0.3 seconds, which is too slow"), ("away.zip", "which is not https")):
            monkeypatch.setattr(paper, "HOPKINS_URL", url + file)
            start = time.monotonic()
            refuses(DataError, f"could not be fetched.*{reason}", load_hopkins155, tmp_path / "home", verbose=False)
            assert time.monotonic() - start < 10
    assert not any((tmp_path / "home").iterdir())
