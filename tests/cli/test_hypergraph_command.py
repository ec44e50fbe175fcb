"""``biclique hypergraph``."""

from __future__ import annotations

import json

import numpy as np
import pytest

from biclique.hypergraph import EXPANSIONS, SPLITTINGS, read_hypergraph, write_hypergraph
from biclique.hypergraph.hypergraph import Hypergraph
from tests.cli.running import run
from tests.cluster.test_hypergraph_clustering import planted
from tests.optional import Optional

pd = Optional("pandas")


@pytest.fixture(params=[".json", ".hgr", ".csv", ".tsv", ".json.gz"])
def file(request, tmp_path):
    path = tmp_path / f"planted{request.param}"
    write_hypergraph(planted()[0], path)
    return path


def test_cluster_a_file_of_every_format(capsys, file, tmp_path):
    output = tmp_path / "labels.csv"
    code, out, err = run(capsys, "hypergraph", "cluster", file, "-k", 3, "-o", output)
    assert (code, err) == (0, "")
    assert "90 vertices, 400 edges of size 2 to 5" in out
    assert f"labels written to {output}" in out
    labels = pd.read_csv(output)
    assert list(labels.columns) == ["vertex", "label"]
    first = 1 if file.suffix == ".hgr" else 0
    assert labels.vertex.tolist() == list(range(first, 90 + first))
    groups = labels.label.to_numpy().reshape(30, 3)
    assert (groups == groups[0]).mean() > 0.95


@pytest.mark.parametrize("expansion", [*EXPANSIONS, *SPLITTINGS])
def test_every_expansion_as_json(capsys, tmp_path, expansion):
    path = tmp_path / "h.json"
    write_hypergraph(planted()[0], path)
    code, out, _ = run(capsys, "hypergraph", "cluster", path, "-k", 3, "--expansion", expansion, "--json")
    result = json.loads(out)
    assert code == 0
    assert result["expansion"] == expansion
    assert sum(c["vertices"] for c in result["clusters"]) == 90
    assert result["normalized_cut"] < 1
    assert (result["distortion"] > 1) == (expansion in ("all_or_nothing", "smaller_side"))


def test_disconnected_is_said_and_the_largest_part_can_be_had(capsys, tmp_path):
    path = tmp_path / "h.csv"
    edges = [*planted(n=30, k=2)[0].edges(), [40, 41], [42]]
    write_hypergraph(Hypergraph.from_edges(edges, vertices=43), path)
    code, out, err = run(capsys, "hypergraph", "cluster", path, "-k", 2)
    assert code == 0
    assert "biclique: warning: the hypergraph falls into 2 connected parts" in err
    assert "share no edge with another" in err
    assert "none" in out
    code, out, err = run(
        capsys, "hypergraph", "cluster", path, "-k", 2, "--largest-component", "-o", tmp_path / "l.npy", "-q"
    )
    assert (code, out, err) == (0, "", "")
    labels = np.load(tmp_path / "l.npy")
    assert (labels[:30] >= 0).all()
    assert (labels[30:] == -1).all()


def test_convert_and_info(capsys, tmp_path):
    source, target = tmp_path / "a.hgr", tmp_path / "b.json"
    source.write_text("2 4 1\n2 1 2 3\n1 3 4\n")
    code, out, _ = run(capsys, "hypergraph", "convert", source, target)
    assert code == 0
    assert "4 vertices, 2 edges of size 2 to 3, 5 incidences" in out
    assert read_hypergraph(target).weights.tolist() == [2, 1]
    code, out, _ = run(capsys, "hypergraph", "info", target)
    assert code == 0
    assert "degrees 1 to 3, median 2" in out
    assert "connected parts: 1 (4 vertices), 0 alone" in out
    code, out, _ = run(capsys, "hypergraph", "info", target, "--json")
    assert json.loads(out)["degrees"] == {"min": 1, "median": 2, "max": 3}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["cluster", "{none}.json", "-k", "3"], 3, "cannot be read"),
        (["cluster", "{bad}", "-k", "3"], 3, "line 2"),
        (["cluster", "{good}", "-k", "0"], 2, "--clusters must be"),
        (["cluster", "{good}", "-k", "500"], 3, "fewer than --clusters 500"),
        (["cluster", "{good}", "-k", "2", "--order", "1"], 2, "--order must be at least 2"),
        (["cluster", "{good}", "-k", "2", "-o", "{none}/x.csv"], 2, "no folder"),
        (["cluster", "{good}", "-k", "2", "-o", "{good}"], 2, "cannot write"),
        (["convert", "{good}", "{none}.xyz"], 3, "xyz"),
        (["info", "{good}.x"], 3, ".x"),
        (["info", "{good}", "--edge-column", "paper"], 2, "--edge-column: for edge lists"),
        (["info", "{table}", "--edge-column", "papr"], 3, "columns: 'paper', 'author', 'year'"),
        (["cluster", "{table}", "-k", "2", "--separator", ""], 2, "--separator must be"),
    ],
)
def test_what_goes_wrong_is_one_line(capsys, tmp_path, arguments, code, message):
    good, bad = tmp_path / "good.hgr", tmp_path / "bad.hgr"
    write_hypergraph(planted()[0], good)
    bad.write_text("1 2\n1 x\n")
    table = tmp_path / "papers.csv"
    table.write_text(PAPERS)
    places = {"good": good, "bad": bad, "table": table, "none": tmp_path / "none"}
    found, out, err = run(capsys, "hypergraph", *[a.format(**places) for a in arguments])
    assert found == code
    assert out == ""
    assert err.startswith("biclique: error: ")
    assert message in err
    assert err.count("\n") == 1


PAPERS = "paper,author,year\np1,ann,2020\np1,bob,2020\np2,bob,2021\np2,cy,2021\np3,dan,2021\np3,eve,2021\n"
COLUMNS = ["--edge-column", "paper", "--vertex-column", "author"]


def test_papers_by_their_columns(capsys, tmp_path):
    path, output, target = tmp_path / "papers.csv", tmp_path / "labels.csv", tmp_path / "papers.json"
    path.write_text(PAPERS)
    for action in (["info", path], ["cluster", path, "-k", 2, "-o", output], ["convert", path, target]):
        code, out, err = run(capsys, "hypergraph", *action)
        assert (code, out, err.count("\n")) == (3, "", 1)
        assert f"biclique hypergraph info {path} {' '.join(COLUMNS)}" in err  # the command to paste
        assert not target.exists()
        code, out, err = run(capsys, "hypergraph", *action, *COLUMNS)
        assert code == 0
        assert "5 vertices, 3 edges of size 2, 6 incidences" in out
    assert pd.read_csv(output).vertex.tolist() == ["ann", "bob", "cy", "dan", "eve"]
    labels = pd.read_csv(output).label.tolist()
    assert labels[0] == labels[1] == labels[2] != labels[3] == labels[4]
    assert read_hypergraph(target).to_dict()["p2"] == ["bob", "cy"]
    code, out, _ = run(capsys, "hypergraph", "info", path, *COLUMNS, "--weight-column", "year", "--json")
    assert json.loads(out)["degrees"]["max"] == 4041


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("title,authors\nCuts,Ann;Bob;Cy\nHeat,Ann;Dan\n", ["--vertex-column", "authors", "--separator", ";"]),
        ("title;authors\nCuts;Ann\tBob\tCy\nHeat;Ann\tDan\n", ["--vertex-column", "authors", "--separator", "\\t"]),
        ("x\nAnn|Bob|Cy\nAnn|Dan\n", ["--separator", "|", "--header", "yes"]),
        ("0,Ann\n0,Bob\n0,Cy\n1,Ann\n1,Dan\n", ["--no-header", "--edge-column", "0", "--vertex-column", "1"]),
        ("0,Ann\n0,Bob\n0,Cy\n1,Ann\n1,Dan\n", ["--header", "no", "--edge-column", "0", "--vertex-column", "1"]),
    ],
)
def test_other_tables_by_options(capsys, tmp_path, content, options):
    path = tmp_path / "papers.csv"
    path.write_text(content)
    code, out, err = run(capsys, "hypergraph", "info", path, *options)
    assert (code, err) == (0, "")
    assert "4 vertices, 2 edges of size 2 to 3, 5 incidences" in out
