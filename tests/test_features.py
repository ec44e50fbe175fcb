"""docs/features.md is true: the tests it names exist, and what it calls kept is there."""

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

import biclique
from biclique.cli import main

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "features.md").read_text(encoding="utf-8")
ESTIMATORS = {
    "C": biclique.BicliqueSpectralClustering,
    "E": biclique.BicliqueSpectralEmbedding,
    "K": biclique.BicliqueKernelKMeans,
    "H": biclique.HypergraphSpectralClustering,
    "S": biclique.InhomogeneousSubspaceClustering,
    "N": biclique.ConsensusClustering,
}


def rows(title):
    """The rows of the tables below a heading: the first cell, then the names in code of each other cell."""
    section = PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    for line in re.findall(r"^\| (?!---|of \||module|command)(.*) \|$", section, flags=re.MULTILINE):
        first, *cells = line.split(" | ")
        yield first.strip("`"), *(re.findall(r"`([^`]+)`", cell) for cell in cells)


def test_every_test_exists():
    named = set(re.findall(r"`((?:\w+/)*test_\w+\.py)(?:::(\w+))?`", PAGE))
    assert len(named) > 80
    missing = []
    for path, function in sorted(named):
        file = TESTS / path
        if not file.exists() or (function and f"def {function}(" not in file.read_text(encoding="utf-8")):
            missing.append(f"{path}::{function}")
    assert not missing


@pytest.mark.parametrize(("module", "names"), [row[:2] for row in rows("Public names")])
def test_public_names_are_there(module, names):
    found = import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []


@pytest.mark.parametrize(("key", "kept"), [row[:2] for row in rows("Parameters of the estimators")])
def test_parameters(key, kept):
    assert set(kept) <= set(signature(ESTIMATORS[key]).parameters)


@pytest.mark.parametrize(("command", "kept"), [row[:2] for row in rows("The command line")])
def test_options(command, kept, capsys):
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    shown = set(re.findall(r"--[a-z][\w-]*", capsys.readouterr().out))
    assert set(kept) <= shown
