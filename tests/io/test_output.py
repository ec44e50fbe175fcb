import csv
import errno
import gc
import os
import stat

import numpy as np
import pytest

from biclique.exceptions import DataError
from biclique.io import (
    LabelWriter,
    atomic_path,
    check_output,
    csv_files,
    parquet_files,
    write_labels,
    writers,
)
from biclique.tables import atomic_files
from tests.optional import Optional, needs

pd = Optional("pandas")
pa = Optional("pyarrow")
pq = Optional("pyarrow.parquet")

LABELS = np.array([2, 0, 1])
ROWS = np.array([0, 2, 3])
SUFFIXES = [pytest.param(s, marks=needs("pyarrow")) if s == ".parquet" else s for s in writers()]


@needs("pyarrow")
def test_labels_with_row_numbers_or_ids(tmp_path):
    write_labels(str(tmp_path / "a.csv"), LABELS, rows=ROWS, n_rows=4)
    assert (tmp_path / "a.csv").read_text() == "row,label\n0,2\n1,\n2,0\n3,1\n"
    write_labels(str(tmp_path / "a.tsv"), LABELS, rows=ROWS, n_rows=4, ids=["x", "v", "y,z", "w"], id_name="key")
    assert (tmp_path / "a.tsv").read_text() == "key\tlabel\nx\t2\nv\t\ny,z\t0\nw\t1\n"
    write_labels(str(tmp_path / "a.npy"), LABELS, rows=ROWS, n_rows=4)
    assert np.load(tmp_path / "a.npy").tolist() == [2, -1, 0, 1]
    write_labels(str(tmp_path / "a.parquet"), LABELS, rows=ROWS, n_rows=4)
    assert pq.read_table(tmp_path / "a.parquet").to_pydict() == {"row": [0, 1, 2, 3], "label": [2, None, 0, 1]}


@needs("pyarrow")
def test_an_id_column_called_label_is_not_lost(tmp_path):
    for name in ("a.csv", "a.parquet"):
        write_labels(str(tmp_path / name), LABELS, rows=ROWS, n_rows=4, ids=["x", "v", "y", "z"], id_name="label")
    assert (tmp_path / "a.csv").read_text() == "label,cluster\nx,2\nv,\ny,0\nz,1\n"
    assert list(pd.read_parquet(tmp_path / "a.parquet").columns) == ["label", "cluster"]


def test_a_failure_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("old")

    def fails():
        with atomic_path(path) as temporary:
            temporary.write_text("half of the")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["labels.csv"]


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    with atomic_path(tmp_path / "a.csv") as temporary:
        temporary.write_text("x")
    (tmp_path / "b.csv").touch()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode
    (tmp_path / "b.csv").chmod(0o600)
    with atomic_path(tmp_path / "b.csv") as temporary:
        temporary.write_text("x")
    assert stat.S_IMODE((tmp_path / "b.csv").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.xls", "must end in one of"), ("no/such/a.csv", "there is no folder"), ("folder.csv", "it is a folder")],
)
def test_outputs_that_cannot_be_written_are_refused_before_the_work(name, message, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match=message):
        check_output(str(tmp_path / name))


def test_the_input_is_never_overwritten(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a\n1\n")
    with pytest.raises(DataError, match="is the input table itself"):
        check_output(str(table), str(table))


# Chunk by chunk


def plainly(path, labels, keys, names):
    """The definition: what the usual writers make of all labels at once."""
    if path.suffix == ".npy":
        np.save(path, labels.astype(np.int64))
    elif path.suffix == ".parquet":
        pq.write_table(pa.table({names[0]: keys, names[1]: labels}), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",", lineterminator="\n")
            writer.writerow(names)
            writer.writerows(zip(keys, labels.tolist(), strict=True))
    return path.read_bytes()


TEXTS = ["a", "b,c", 'say "x"', "", " tab\there", "two\nlines", "é", "7"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("ids", [None, "texts", "numbers"])
def test_chunks_of_labels_make_the_file_of_all_labels(suffix, dtype, ids, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "TEXT_ROWS", 30)
    random = np.random.RandomState(0)
    labels = random.randint(0, 120, 1005).astype(dtype)
    if dtype != np.uint8:
        labels[random.rand(1005) < 0.1] = -1
        labels[7] = np.iinfo(dtype).min
    labels[8] = np.iinfo(dtype).max
    keys = {
        None: list(range(1005)),
        "texts": [TEXTS[i % len(TEXTS)] for i in range(1005)],
        "numbers": random.randint(-(2**60), 2**60, 1005).tolist(),
    }[ids]
    given = {None: None, "texts": keys, "numbers": np.array(keys)}[ids]
    path = tmp_path / f"labels{suffix}"
    for cuts in ([], [1, 1, 95, 400, 1004]):
        with LabelWriter(path, id_name="key") as writer:
            for start, stop in zip([0, *cuts], [*cuts, 1005], strict=True):
                writer.write(labels[start:stop], None if given is None else given[start:stop])
        assert writer.n_rows == 1005
        assert path.read_bytes() == plainly(tmp_path / f"plain{suffix}", labels, keys, ["key", "label"])


@needs("pyarrow")
def test_groups_of_parquet_rows_do_not_follow_the_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", 100)
    with LabelWriter(tmp_path / "a.parquet") as writer:
        for size in (30, 60, 350, 5):
            writer.write(np.full(size, size))
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [100] * 4 + [45]
    assert file.read().column("row").to_pylist() == list(range(445))
    assert file.read().column("label").to_pylist() == [30] * 30 + [60] * 60 + [350] * 350 + [5] * 5


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_labels_at_all(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    with LabelWriter(path):
        pass
    if suffix == ".npy":
        assert np.load(path).shape == (0,)
    elif suffix == ".parquet":
        assert pd.read_parquet(path).shape == (0, 2)
    else:
        assert path.read_text().split() in (["row,label"], ["row", "label"])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_labels_broken_off_leave_nothing(suffix, error, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "GROUP_ROWS", 2)
    path = tmp_path / f"a{suffix}"

    def broken_off():
        with LabelWriter(path) as writer:
            writer.write(LABELS)
            raise error

    with pytest.raises(error):
        broken_off()
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"old")
    with pytest.raises(error):
        broken_off()
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("n", [30_000, 400_000])
def test_a_file_that_the_system_lets_grow_no_further(suffix, n, tmp_path):
    resource = pytest.importorskip("resource")
    labels = np.random.RandomState(0).randint(0, 2**31, n)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write():
        with LabelWriter(tmp_path / f"a{suffix}") as writer:
            writer.write(labels)

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    gc.collect()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("good_writes", [0, 1, 2])
def test_a_full_disk_is_said_and_leaves_nothing(good_writes, tmp_path, monkeypatch):
    left = [good_writes]
    put = csv_files.TextSink._put

    def full(self, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        put(self, data)

    monkeypatch.setattr(csv_files.TextSink, "_put", full)

    def write():
        with LabelWriter(tmp_path / "a.csv") as writer:
            writer.write(LABELS)
            writer.write(LABELS)

    with pytest.raises(OSError, match="No space left") as caught:
        write()
    assert caught.value.errno == errno.ENOSPC
    gc.collect()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_disk_that_is_full_at_the_end_leaves_nothing(suffix, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_labels(str(tmp_path / f"a{suffix}"), LABELS, rows=ROWS, n_rows=4)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("labels", "ids", "message"),
    [
        ([0.5, 1.0], None, r"labels must be one whole number for each row, got float64 of shape \(2,\)"),
        ([[1, 2]], None, r"got int64 of shape \(1, 2\)"),
        ([1, 2], ["a"], "1 ids came with 2 labels"),
        ([1], ["a"], "ids must be texts in every chunk, or numbers in every chunk"),
    ],
)
def test_labels_that_cannot_be_written(labels, ids, message, tmp_path):
    def write():
        with LabelWriter(tmp_path / "a.csv") as writer:
            writer.write(LABELS)
            writer.write(labels, ids)

    with pytest.raises(DataError, match=message):
        write()
    assert os.listdir(tmp_path) == []


def test_a_writer_is_opened_where_it_can_write_and_used_in_a_block(tmp_path):
    with pytest.raises(DataError, match="must end in one of"):
        LabelWriter(tmp_path / "a.xls")
    writer = LabelWriter(tmp_path / "a.csv")
    with pytest.raises(DataError, match="inside a with block"):
        writer.write(LABELS)
    with writer:
        writer.write(LABELS)
    with pytest.raises(DataError, match="inside a with block"):
        writer.write(LABELS)
    assert (tmp_path / "a.csv").read_text() == "row,label\n0,2\n1,0\n2,1\n"


@needs("pyarrow")
def test_labels_are_not_changed(tmp_path):
    labels = LABELS.copy()
    labels.setflags(write=False)
    for suffix in writers():
        with LabelWriter(tmp_path / f"a{suffix}") as writer:
            writer.write(labels)
            writer.write(labels[::-1])
