"""Commands in a folder of their own."""

import json
import shlex
from pathlib import Path

import pytest

from biclique.cli import main


def lines_of(name):
    return Path(name).read_text().splitlines()


def pasted(err):
    """The command to paste, without its first word."""
    return err.splitlines()[-1].strip().removeprefix("biclique ")


@pytest.fixture
def cli(capfd, tmp_path, monkeypatch):
    """A command, as a shell has it: its exit code, and what it printed on standard output and on standard error."""
    monkeypatch.chdir(tmp_path)

    def run(text, *more):
        code = main([*shlex.split(text), *map(str, more)])
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def done(cli):
    """What a command that ends well prints on standard output and on standard error."""

    def run(text, *more):
        code, out, err = cli(text, *more)
        assert code == 0, err
        return out, err

    return run


@pytest.fixture
def facts(done):
    """What a command finds, by its keys; it warns inside alone."""

    def run(text):
        out, err = done(f"{text} --json")
        assert err == ""
        return json.loads(out)

    return run


@pytest.fixture
def explained(cli):
    """What a command says of data that it cannot use, in several lines."""

    def run(text):
        code, out, err = cli(text)
        assert (code, out) == (3, "")
        return err

    return run


@pytest.fixture
def refused(cli):
    """The one line of a command that fails, with its exit code before it."""

    def run(text, *more):
        code, out, err = cli(text, *more)
        assert (out, err.count("\n"), err[:17]) == ("", 1, "biclique: error: ")
        return f"{code} {err[17:]}"

    return run
