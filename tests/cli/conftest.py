"""Commands in a folder of their own."""

import shlex

import pytest

from biclique.cli import main


@pytest.fixture
def cli(capfd, tmp_path, monkeypatch):
    """A command, as a shell has it: its exit code, and what it printed on standard output and on standard error."""
    monkeypatch.chdir(tmp_path)

    def run(text, *more):
        code = main([*shlex.split(text), *map(str, more)])
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def refused(cli):
    """The one line of a command that fails, with its exit code before it."""

    def run(text, *more):
        code, out, err = cli(text, *more)
        assert (out, err.count("\n"), err[:17]) == ("", 1, "biclique: error: ")
        return f"{code} {err[17:]}"

    return run
