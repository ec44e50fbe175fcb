"""Drill: a table format is one class and one entry in FORMATS, and everything that reads and writes tables knows it."""

from functools import partial

import numpy as np
import pytest

from biclique.cli import main
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.exceptions import DataError, TableError
from biclique.io import FORMATS, Roles, TableFormat, find_format, open_chunks, read_table, write_labels
from biclique.io.chunks import FileChunks, held
from biclique.io.csv_files import TextSink
from biclique.io.roles import feature_columns


class ToyChunks(FileChunks):
    """Lines of numbers between bars, below a line of names: ``x|y``."""

    def __init__(self, path, roles, memory_limit):
        super().__init__(path, memory_limit)
        names = path.read_text().split("\n", 1)[0].split("|")
        self._names, self._places = names, feature_columns(self.name, names, roles)
        self.columns = [names[j] for j in self._places]
        self.n_columns, self.dtype = len(self.columns), np.dtype(float)
        self._n_rows = len(path.read_text().splitlines()) - 1
        self._check_rows()

    def _lines(self):
        return (line.split("|") for line in self._path.read_text().splitlines()[1:])

    def _pieces(self, rows):  # noqa: ARG002
        for fields in self._lines():
            yield np.array([[float(fields[j]) for j in self._places]])

    def texts(self, name):
        yield [fields[self._names.index(name)] for fields in self._lines()]


@pytest.fixture
def toy(monkeypatch):
    kind = TableFormat("toy", (".toy", ".toytoy"), held(ToyChunks), ToyChunks, partial(TextSink, delimiter="|"))
    for ending in kind.endings:
        monkeypatch.setitem(FORMATS, ending, kind)
    return kind


@pytest.fixture
def table(tmp_path):
    random = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0) + random.normal(size=(60, 2))
    lines = [f"n{i}|{x!r}|{y!r}|{'ab'[i // 30]}" for i, (x, y) in enumerate(X.tolist())]
    path = tmp_path / "t.toy"
    path.write_text("\n".join(["name|x|y|kind", *lines]))
    return path, X


ROLES = Roles(label="kind", id="name")
TWO = np.repeat([0, 1], 30)


def same_groups(labels):
    return np.array_equal(labels, TWO) or np.array_equal(labels, 1 - TWO)


@pytest.mark.usefixtures("toy")
def test_a_new_format_is_read_whole_and_in_chunks(table):
    path, X = table
    read = read_table(path, ROLES)
    assert np.array_equal(read.X, X)
    assert (read.columns, read.labels, read.ids[:2]) == (["x", "y"], ["a"] * 30 + ["b"] * 30, ["n0", "n1"])
    source = open_chunks(path, roles=ROLES)
    assert np.array_equal(np.concatenate([np.array(chunk) for chunk in source.chunks(7)]), X)
    assert np.array_equal(source.take(np.array([3, 50])), X[[3, 50]])
    with pytest.raises(TableError, match=r"Roles\(drop=…\) names column 'z'"):
        read_table(path, Roles(drop=["z"]))
    with pytest.raises(TableError, match="no such file"):
        open_chunks(path.with_suffix(".toytoy"))


@pytest.mark.usefixtures("toy")
def test_a_new_format_is_fitted_from_its_path(table, tmp_path):
    _, X = table
    path = tmp_path / "numbers.toytoy"
    path.write_text("\n".join(["x|y", *(f"{x!r}|{y!r}" for x, y in X.tolist())]))
    model = BicliqueSpectralClustering(2, rank=20, random_state=0).fit(path)
    assert same_groups(model.labels_)
    assert np.array_equal(model.predict(str(path)), model.labels_)


@pytest.mark.usefixtures("toy")
def test_a_new_format_on_the_command_line(table, tmp_path, capsys):
    path, _ = table
    output = tmp_path / "labels.toy"
    roles = ["--label-column", "kind", "--id", "name"]
    assert main(["cluster", str(path), "-k", "2", "-o", str(output), *roles]) == 0
    assert "error 0.0000 against the known classes" in capsys.readouterr().out
    lines = [line.split("|") for line in output.read_text().splitlines()]
    assert lines[0] == ["name", "label"]
    assert [name for name, _ in lines[1:]] == [f"n{i}" for i in range(60)]
    assert same_groups([int(label) for _, label in lines[1:]])


@pytest.mark.usefixtures("toy")
def test_messages_and_help_name_a_new_format(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["cluster", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert ".csv, .tsv, .npy, .npz, .parquet or .toy file, .zarr folder" in shown
    assert "to FILE (.csv, .tsv, .npy, .parquet or .toy)" in shown
    for read, message in (
        (read_table, r"\.toy, \.toytoy\.$"),
        (open_chunks, r"in chunks .*\.zarr, \.toy, \.toytoy\.$"),
    ):
        with pytest.raises(TableError, match=message):
            read(tmp_path / "t.xls")
    with pytest.raises(DataError, match=r"must end in one of \.csv, \.tsv, \.npy, \.parquet, \.toy\.$"):
        write_labels(str(tmp_path / "t.toytoy"), TWO, rows=np.arange(60), n_rows=60)


def test_the_drill_leaves_nothing(tmp_path):
    assert find_format("t.toy") is None
    with pytest.raises(TableError, match="unknown kind of table"):
        read_table(tmp_path / "t.toy")
