import glob
import gzip
import io
import os
import sys
import tempfile

import pytest

ROWS = "".join(f"n{i},{i % 2 * 9 + i / 100},{i % 2 == 0},{'' if i == 5 else i / 50}\n" for i in range(60))
TEXT = "name,x,even,y\n" + ROWS
ARGUMENTS = "-k 2 --id name --drop-missing --seed 0"


class Input(io.TextIOWrapper):
    def isatty(self):
        return False


@pytest.fixture
def send(monkeypatch):
    """Standard input with this content; nothing is left of its copy."""

    def left():
        return set(glob.glob(f"{tempfile.gettempdir()}/.biclique-{os.getpid()}-*"))

    before = left()
    yield lambda content: monkeypatch.setattr(sys, "stdin", Input(io.BytesIO(content)))
    assert left() == before


@pytest.mark.parametrize("zipped", [False, True])
def test_standard_input_and_output(send, done, zipped):
    send(gzip.compress(TEXT.encode()) if zipped else TEXT.encode())
    out, err = done(f"cluster - -o - {ARGUMENTS}")
    lines = out.splitlines()
    assert lines[0] == "name,label"
    assert [line.split(",")[0] for line in lines[1:]] == [f"n{i}" for i in range(60)]
    assert [line for line in lines if line.endswith(",")] == ["n5,"]
    assert len({line.split(",")[1] for line in lines[1::2]}) == 1
    assert "standard input: 59 rows, 1 left out, 3 columns" in err
    assert "labels written to standard output" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TEXT.replace("n7,9.07", "n7,oops"), "numbers, but for 1 of 60: 'oops' in row 8; if 'oops' stands for a gap"),
        ("", "standard input: the file is empty"),
    ],
)
def test_errors_name_standard_input(send, explained, content, message):
    send(content.encode())
    err = explained(f"cluster - {ARGUMENTS}")
    assert message in err
    assert tempfile.gettempdir() not in err
