import io
import os
import sys

import pytest

from biclique import progress as module
from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.progress import PLAIN_SECONDS, Progress, format_seconds


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.44, "0.4 s"), (36.4, "36 s"), (59.9, "1 min 0 s"), (250, "4 min 10 s"), (7500, "2 h 5 min")],
)
def test_seconds_read_well(seconds, text):
    assert format_seconds(seconds) == text


def test_a_terminal_line_is_redrawn_and_wiped():
    stream = Terminal()
    with Progress(True, stream) as progress:
        progress.passed(1, 0.1, 1e-3)
        progress.passed(2, 0.01, 1e-3)
        line = stream.getvalue().split("\r")[-1]
        assert "pass 2" in line
        assert "residual 1.0e-02 (target 1.0e-03)" in line
        assert "left" in line
        progress.say("a note")
    assert stream.getvalue().rstrip("\r ").endswith("biclique: a note\n")


def test_a_notebook_is_a_terminal(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", io)
    stream = io.StringIO()
    with Progress(True, stream) as progress:
        for share in (0.2, 0.4, 1.0):
            progress.share("rows", share)
    assert "\n" not in stream.getvalue()
    assert "rows 100%" in stream.getvalue()


def test_elsewhere_one_line_a_pass():
    stream = io.StringIO()
    with Progress(True, stream) as progress:
        progress.tick(0.5)
        progress.passed(1, 0.1, 1e-3)
        progress.passed(2, 1e-4, 1e-3)
    assert len(stream.getvalue().splitlines()) == 2
    assert "\r" not in stream.getvalue()


def test_the_forecast_follows_the_residuals():
    progress = Progress(True, io.StringIO())
    progress.passed(1, 1.0, 1e-4)
    progress.passed(2, 0.1, 1e-4)
    assert progress._expected == pytest.approx(5)  # a digit a pass, three to go
    progress.passed(3, 1e-5, 1e-4)
    assert progress._expected == 3


def test_nothing_is_printed_unless_asked_for(capfd, many_blobs):
    for parameters, step in (
        ({}, "pass over the rows for the labels"),
        ({"affinity": "rbf", "gram": "tiled"}, "pass 2"),
    ):
        BicliqueSpectralClustering(5, **parameters).fit(many_blobs[0])
        assert capfd.readouterr() == ("", "")
        BicliqueSpectralClustering(5, verbose=1, **parameters).fit(many_blobs[0])
        out, err = capfd.readouterr()
        assert out == ""
        assert step in err
    assert "residual" in err


@pytest.mark.parametrize("columns", [80, 40, 25, 12, 2])
def test_the_line_is_never_wider_than_the_terminal(monkeypatch, columns):
    termios = pytest.importorskip("termios")
    screen, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, columns))
    with open(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress(True) as progress:
            progress.passed(1, 0.1, 1e-3)
            progress.passed(2, 0.01, 1e-3)
            progress.share("a pass over the rows for the scale of the columns", 0.5, "12 of 24")
            progress.share("a pass over the rows for the scale of the columns", 1.0, "24 of 24")
        stream.flush()
        shown = os.read(screen, 2**16).decode()
    os.close(screen)
    assert "\n" not in shown
    assert max(map(len, shown.split("\r"))) <= columns


def test_in_a_pipe_a_line_every_ten_seconds(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])
    stream = io.StringIO()
    module.start_clock()
    with Progress(True, stream, every=PLAIN_SECONDS) as progress:
        for second in range(1, 36):
            now[0] = 1000.0 + second
            progress.passed(second, 1.0 / second, 1e-9)
            progress.tick(0.5)
            progress.say("a step")
    lines = stream.getvalue().splitlines()
    assert [line.split("pass ")[1].split()[0] for line in lines] == ["10", "20", "30"]
    with Progress(True, stream, every=PLAIN_SECONDS) as progress:  # the next piece of work goes on with the same clock
        progress.share("rows", 0.1)
        progress.note("always")
    assert stream.getvalue().splitlines()[3:] == ["biclique: always"]
    assert Progress.of(0).enabled is False
    assert Progress.of(1)._every == 0
    assert Progress.of(10)._every == 10
