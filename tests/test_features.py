"""What docs/features.md calls kept is there; ``test_docs.py`` looks for the tests that it names."""

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

import biclique
from biclique.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "features.md").read_text(encoding="utf-8")
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
