"""The paper's data: tiny made-up files in the original layouts, checks, downloads; the real data where they lie."""

from __future__ import annotations

import functools
import http.server
import os
import pickle
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from biclique.datasets import data_home, load_hopkins155, load_iris, load_ovarian, load_spine, paper
from biclique.exceptions import DataError, ParameterError

REAL = Path(os.environ.get("BICLIQUE_DATA") or "no folder")
needs_data = pytest.mark.skipif(
    not (REAL / "hopkins155.npz").exists(), reason="the paper's data are not in BICLIQUE_DATA"
)


@pytest.fixture
def unchecked(monkeypatch):
    """Made-up data have no published checksum."""
    monkeypatch.setattr(paper, "DIGESTS", dict.fromkeys(paper.DIGESTS))


def write_spine(folder):
    rows = ["63.03 22.55 39.61 40.48 98.67 -0.25", "39.06 10.06 25.02 29 114.41 4.56", "1 2 3 4 5 6"]
    (folder / "column_2C.dat").write_text("\n".join(f"{r} {c}" for r, c in zip(rows, ["AB", "AB", "NO"], strict=True)))
    (folder / "column_3C.dat").write_text("\n".join(f"{r} {c}" for r, c in zip(rows, ["DH", "SL", "NO"], strict=True)))


def tracks(points=6, frames=3, seed=0):
    random = np.random.default_rng(seed)
    x = np.concatenate([random.standard_normal((2, points, frames)), np.ones((1, points, frames))])
    return {"x": x, "s": np.array([[1], [1], [2], [2], [2], [1]]), "frames": frames}


def write_hopkins(folder):
    with zipfile.ZipFile(folder / "Hopkins155.zip", "w") as archive:
        for seed, name in enumerate(["arm", "cars1", "dancing"]):
            savemat(folder / "t.mat", tracks(seed=seed))
            archive.write(folder / "t.mat", f"Hopkins155/{name}/{name}_truth.mat")
        archive.writestr("../../escape_truth.mat", b"x")
        archive.writestr("Hopkins155/readme.txt", "text")
    (folder / "t.mat").unlink()


def test_iris():
    bunch = load_iris()
    assert bunch.data.shape == (150, 4)


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


def test_hopkins_from_the_archive_the_folder_and_arrays(tmp_path, unchecked):
    write_hopkins(tmp_path)
    archive = load_hopkins155(tmp_path)
    assert archive.names == ["arm", "cars1"]
    assert len(archive) == 2
    first = next(iter(archive))
    x = tracks()["x"]
    assert first.data.shape == (6, 6)
    np.testing.assert_array_equal(
        first.data[0], [x[0, 0, 0], x[1, 0, 0], x[0, 0, 1], x[1, 0, 1], x[0, 0, 2], x[1, 0, 2]]
    )
    assert first.target.tolist() == [0, 0, 1, 1, 1, 0]
    assert first.n_clusters == 2
    assert not (tmp_path.parent / "escape_truth.mat").exists()
    unpacked = tmp_path / "unpacked"
    for seed, name in enumerate(["arm", "cars1"]):
        (unpacked / "Hopkins155" / name).mkdir(parents=True)
        savemat(unpacked / "Hopkins155" / name / f"{name}_truth.mat", tracks(seed=seed))
    assert load_hopkins155(unpacked).digest() == archive.digest()
    arrays = tmp_path / "arrays"
    arrays.mkdir()
    content = {f"{s.name}/X": s.data for s in archive} | {f"{s.name}/y": s.target + 1 for s in archive}
    np.savez(arrays / "hopkins155.npz", **content)
    assert load_hopkins155(arrays).digest() == archive.digest()
    with pytest.raises(ParameterError, match="no sequence 'x'"):
        archive.sequence("x")


def test_other_numbers_than_the_published_ones_are_refused(tmp_path):
    write_spine(tmp_path)
    with pytest.raises(DataError, match="not the published spine data"):
        load_spine(tmp_path)
    write_hopkins(tmp_path)
    with pytest.raises(DataError, match="not the published Hopkins155 data"):
        load_hopkins155(tmp_path)


def test_nothing_is_unpickled(tmp_path, unchecked):
    np.savez(tmp_path / "ovarian100.npz", X=np.array([object()], dtype=object), y=[1])
    with pytest.raises(DataError, match="not the expected file"):
        load_ovarian(tmp_path)
    (tmp_path / "ovarian100.npz").write_bytes(pickle.dumps({"X": 1}))
    with pytest.raises(DataError, match="not the expected file"):
        load_ovarian(tmp_path)


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
        (
            {"column_2C.dat": b"1 2 3\n4 5 6\n", "column_3C.dat": b"1 2 3\n4 5 6\n"},
            load_spine,
            "six numbers and a class",
        ),
    ],
)
def test_damaged_files_are_said_to_be_so(tmp_path, unchecked, files, load, message):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_damaged_sequences(tmp_path, unchecked):
    folder = tmp_path / "Hopkins155" / "arm"
    folder.mkdir(parents=True)
    (folder / "arm_truth.mat").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not a readable MATLAB file"):
        next(iter(load_hopkins155(tmp_path)))
    savemat(folder / "arm_truth.mat", {"x": np.ones((3, 4)), "s": np.ones(4)})
    with pytest.raises(DataError, match="must have shape"):
        next(iter(load_hopkins155(tmp_path)))
    (folder / "arm_truth.mat").unlink()
    with pytest.raises(DataError, match="no sequence"):
        load_hopkins155(tmp_path)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


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
    for load, file in (
        (load_spine, "spine.csv"),
        (load_ovarian, "ovarian100.npz"),
        (load_hopkins155, "hopkins155.npz"),
    ):
        with pytest.raises(DataError, match=f"could not be fetched.*put {file}.*BICLIQUE_DATA"):
            load(tmp_path / "home", verbose=False)
    assert not any((tmp_path / "home").iterdir())
    with pytest.raises(DataError, match=r"ovariancancer.*numpy\.savez"):
        load_ovarian(tmp_path / "home", features=4000)


def test_a_wrong_download_does_not_stay(tmp_path, server, monkeypatch):
    folder, url = server
    write_spine(folder)
    (folder / "Hopkins155.zip").write_text("<html>moved</html>")
    monkeypatch.setattr(paper, "SPINE_URL", url)
    monkeypatch.setattr(paper, "HOPKINS_URL", url + "Hopkins155.zip")
    home = tmp_path / "home"
    with pytest.raises(DataError, match="not the published"):
        load_spine(home, verbose=False)
    with pytest.raises(DataError, match="not a complete archive"):
        load_hopkins155(home, verbose=False)
    assert not any(home.iterdir())


def test_archives_that_are_damaged_inside_or_too_large(tmp_path, unchecked, monkeypatch):
    write_hopkins(tmp_path)
    path = tmp_path / "Hopkins155.zip"
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"cannot be read|not a readable"):
        list(load_hopkins155(tmp_path))
    np.savez(tmp_path / "ovarian100.npz", X=np.ones((3, 100)), y=np.ones(3))
    monkeypatch.setattr(paper, "LARGEST_MEMBER", 1000)
    with pytest.raises(DataError, match="none of the published data"):
        load_ovarian(tmp_path)
    monkeypatch.undo()
    np.savez(tmp_path / "ovarian100.npz", X=np.ones((3, 100)) * 1j, y=np.ones(3))
    with pytest.raises(DataError, match="real numbers"):
        load_ovarian(tmp_path)


def test_where_data_lie(tmp_path, monkeypatch):
    monkeypatch.setenv("BICLIQUE_DATA", str(tmp_path))
    assert data_home() == tmp_path
    assert data_home("other") == Path("other")
    monkeypatch.delenv("BICLIQUE_DATA")
    assert data_home() == Path.home() / ".cache" / "biclique"
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="must be a folder"):
        data_home(tmp_path / "file")
    with pytest.raises(DataError, match="name of a folder"):
        data_home(5)
    with pytest.raises(ParameterError, match="classes must be"):
        load_spine(tmp_path, classes=4)
    with pytest.raises(ParameterError, match="features must be"):
        load_ovarian(tmp_path, features=5)


@needs_data
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
