import glob
import gzip
import io
import json
import sys
import tempfile

import numpy as np
import pytest

from biclique.cli import main

ROWS = "".join(f"n{i},{i % 2 * 9 + i / 100},{i % 2 == 0},{'' if i == 5 else i / 50}\n" for i in range(60))
TEXT = "name,x,even,y\n" + ROWS
ARGUMENTS = ["-k", "2", "--id", "name", "--drop-missing", "--seed", "0"]


class Input(io.TextIOWrapper):
    def isatty(self):
        return False


@pytest.fixture
def send(monkeypatch):
    def send(content):
        monkeypatch.setattr(sys, "stdin", Input(io.BytesIO(content)))

    return send


def left():
    return set(glob.glob(f"{tempfile.gettempdir()}/.biclique-*"))


@pytest.mark.parametrize("zipped", [False, True])
def test_standard_input_and_output(send, capfd, zipped):
    before = left()
    send(gzip.compress(TEXT.encode()) if zipped else TEXT.encode())
    assert main(["cluster", "-", "-o", "-", *ARGUMENTS]) == 0
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert lines[0] == "name,label"
    assert [line.split(",")[0] for line in lines[1:]] == [f"n{i}" for i in range(60)]
    assert [line for line in lines if line.endswith(",")] == ["n5,"]
    labels = [line.split(",")[1] for line in lines[1:]]
    assert set(labels[::2]) == {labels[0]}
    assert "standard input: 59 rows, 1 left out, 3 columns" in err
    assert "labels written to standard output" in err
    assert left() == before


def test_errors_name_standard_input(send, capsys):
    before = left()
    for content, message in (
        (TEXT.replace("n7,9.07", "n7,oops"), "numbers, but for 1 of 60: 'oops' in row 7 (from 0)"),
        ("", "standard input: the file is empty"),
    ):
        send(content.encode())
        assert main(["cluster", "-", *ARGUMENTS]) == 3
        assert message in capsys.readouterr().err
    assert left() == before


def test_a_packed_table_is_the_table(capsys, tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(TEXT.replace(",", "\t").encode()))
    files = []
    for name in ("t.csv", "t.tsv.gz"):
        for output in ("l.csv", "l.npy"):
            assert main(["cluster", str(tmp_path / name), "-o", str(tmp_path / output), *ARGUMENTS, "--json"]) == 0
            result = json.loads(capsys.readouterr().out)
            assert (result["rows"], result["rows_left_out"], result["streamed"]) == (59, 1, False)
        files.append((tmp_path / "l.csv").read_bytes())
        assert np.flatnonzero(np.load(tmp_path / "l.npy") == -1).tolist() == [5]
    assert files[0] == files[1]


def test_rows_count_from_0(capsys, tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    arguments = ["cluster", str(tmp_path / "t.csv"), "-k", "2", "--drop", "name", "--drop-missing"]
    assert main([*arguments, "-o", str(tmp_path / "l.csv")]) == 0
    lines = (tmp_path / "l.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["row", *map(str, range(60))]
    assert lines[6] == "5,"
    assert "3 columns" in capsys.readouterr().out


def test_decimal_commas_encodings_and_a_header_of_numbers(capsys, tmp_path):
    path = tmp_path / "t.csv"
    text = "größe;b\n" + "".join(f"{i % 2 * 9},5;{i},25\n" for i in range(40))
    path.write_text(text, encoding="latin-1")
    good = ["cluster", str(path), "-k", "2", "--decimal", ",", "--encoding", "latin-1"]
    for arguments, message in (
        (good[:-2], "save it as UTF-8, or name its encoding with --encoding"),
        ([*good[:4], *good[6:]], "numbers with a decimal comma, such as '0,5': say so with --decimal ,"),
    ):
        assert main(arguments) == 3
        assert message in capsys.readouterr().err
    assert main(good) == 0
    assert "40 rows, 2 columns" in capsys.readouterr().out
    path.write_text("2019,2020,2021\n" + "".join(f"{i % 2 * 9}.5,{i * 7 % 40},1{i}\n" for i in range(40)))
    assert main(["cluster", str(path), "-k", "2"]) == 0
    assert "say so: --header yes." in capsys.readouterr().err
    assert main(["cluster", str(path), "-k", "2", "--header", "yes"]) == 0
    out, err = capsys.readouterr()
    assert ("40 rows" in out, err) == (True, "")
