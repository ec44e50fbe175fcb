"""``biclique hypergraph``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from biclique.hypergraph import read_hypergraph, write_hypergraph
from biclique.hypergraph.hypergraph import Hypergraph
from tests.cluster.test_hypergraph_clustering import planted
from tests.optional import Optional

pd = Optional("pandas")
PAPERS = "paper,author,year\np1,ann,2020\np1,bob,2020\np2,bob,2021\np2,cy,2021\np3,dan,2021\np3,eve,2021\n"
COLUMNS = "--edge-column paper --vertex-column author"


@pytest.mark.parametrize("ending", [".json", ".hgr"])
def test_cluster_a_file_of_every_format(done, ending):
    write_hypergraph(planted()[0], f"planted{ending}")
    out, err = done(f"hypergraph cluster planted{ending} -k 3 -o labels.csv")
    assert err == ""
    assert "90 vertices, 400 edges of size 2 to 5" in out
    assert "labels written to labels.csv" in out
    labels = pd.read_csv("labels.csv")
    assert list(labels.columns) == ["vertex", "label"]
    first = 1 if ending == ".hgr" else 0
    assert labels.vertex.tolist() == list(range(first, 90 + first))
    groups = labels.label.to_numpy().reshape(30, 3)
    assert (groups == groups[0]).mean() > 0.95


@pytest.mark.parametrize("expansion", ["clique", "all_or_nothing"])
def test_every_expansion_as_json(facts, expansion):
    write_hypergraph(planted()[0], "h.json")
    result = facts(f"hypergraph cluster h.json -k 3 --expansion {expansion}")
    assert result["expansion"] == expansion
    assert sum(c["vertices"] for c in result["clusters"]) == 90
    assert result["normalized_cut"] < 1
    assert (result["distortion"] > 1) == (expansion == "all_or_nothing")


def test_disconnected_is_said_and_the_largest_part_can_be_had(cli, done):
    edges = [*planted(n=30, k=2)[0].edges(), [40, 41], [42]]
    write_hypergraph(Hypergraph.from_edges(edges, vertices=43), "h.csv")
    out, err = done("hypergraph cluster h.csv -k 2")
    assert "none" in out
    words = ["biclique: warning: the hypergraph falls into 2 connected components", "share no edge with another"]
    assert [text for text in [*words, "give --largest-component"] if text not in err] == []
    assert cli("hypergraph cluster h.csv -k 2 --largest-component -o l.npy -q") == (0, "", "")
    labels = np.load("l.npy")
    assert (labels[:30] >= 0).all()
    assert (labels[30:] == -1).all()


def test_labels_to_standard_output(done):
    write_hypergraph(Hypergraph.from_edges([["a", "b"], ["b", "c"], ["d", "e"]]), "h.json")
    out, err = done("hypergraph cluster h.json -k 2 -o -")
    assert out == "vertex,label\na,0\nb,0\nc,0\nd,1\ne,1\n"
    assert "labels written to standard output" in err


def test_convert_and_info(done, facts, tmp_path):
    (tmp_path / "a.hgr").write_text("2 4 1\n2 1 2 3\n1 3 4\n")
    assert "4 vertices, 2 edges of size 2 to 3, 5 incidences" in done("hypergraph convert a.hgr b.json")[0]
    assert read_hypergraph("b.json").weights.tolist() == [2, 1]
    out, _ = done("hypergraph info b.json")
    assert "degrees 1 to 3, median 2" in out
    assert "connected components: 1 (4 vertices), 0 alone" in out
    assert facts("hypergraph info b.json")["degrees"] == {"min": 1, "median": 2, "max": 3}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("cluster none.json -k 3", 3, "cannot be read"),
        ("cluster bad.hgr -k 3", 3, "line 2"),
        ("cluster good.hgr -k 0", 2, "--clusters must be"),
        ("cluster good.hgr -k 500", 3, "fewer than --clusters 500"),
        ("cluster good.hgr -k 2 --order 1", 2, "--order must be at least 2"),
        ("cluster good.hgr -k 2 -o none/x.csv", 2, "no folder"),
        ("cluster good.hgr -k 2 -o good.hgr", 2, "cannot write"),
        ("convert good.hgr none.xyz", 3, "xyz"),
        ("info good.hgr.x", 3, ".x"),
        ("info good.hgr --edge-column paper", 2, "--edge-column: for edge lists"),
        ("info papers.csv --edge-column papr", 3, "columns: 'paper', 'author', 'year'"),
        ("cluster papers.csv -k 2 --separator ''", 2, "--separator must be"),
    ],
)
def test_what_goes_wrong_is_one_line(refused, tmp_path, arguments, code, message):
    write_hypergraph(planted()[0], "good.hgr")
    (tmp_path / "bad.hgr").write_text("1 2\n1 x\n")
    (tmp_path / "papers.csv").write_text(PAPERS)
    error = refused(f"hypergraph {arguments}")
    assert (error[0], message in error) == (str(code), True)


def test_papers_by_their_columns(done, facts, refused, tmp_path):
    (tmp_path / "papers.csv").write_text(PAPERS)
    for action in ("info papers.csv", "cluster papers.csv -k 2 -o labels.csv", "convert papers.csv papers.json"):
        to_paste = f"biclique hypergraph {action} {COLUMNS}. If a line is an edge: --header yes"
        assert to_paste in refused(f"hypergraph {action}")
        assert not Path("papers.json").exists()
        assert "5 vertices, 3 edges of size 2, 6 incidences" in done(f"hypergraph {action} {COLUMNS}")[0]
    assert pd.read_csv("labels.csv").vertex.tolist() == ["ann", "bob", "cy", "dan", "eve"]
    labels = pd.read_csv("labels.csv").label.tolist()
    assert labels[0] == labels[1] == labels[2] != labels[3] == labels[4]
    assert read_hypergraph("papers.json").to_dict()["p2"] == ["bob", "cy"]
    assert facts(f"hypergraph info papers.csv {COLUMNS} --weight-column year")["degrees"]["max"] == 4041
    found = refused("hypergraph info papers.csv --edge-column papr --vertex-column author")
    assert "papers.csv: --edge-column names column 'papr', which does not exist" in found


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("title,authors\nCuts,Ann;Bob;Cy\nHeat,Ann;Dan\n", "--vertex-column authors --separator ';'"),
        ("title;authors\nCuts;Ann\tBob\tCy\nHeat;Ann\tDan\n", r"--vertex-column authors --separator '\t'"),
        ("x\nAnn|Bob|Cy\nAnn|Dan\n", "--separator '|' --header yes"),
        ("0,Ann\n0,Bob\n0,Cy\n1,Ann\n1,Dan\n", "--no-header --edge-column 0 --vertex-column 1"),
        ("0,Ann\n0,Bob\n0,Cy\n1,Ann\n1,Dan\n", "--header no --edge-column 0 --vertex-column 1"),
    ],
)
def test_other_tables_by_options(done, tmp_path, content, options):
    (tmp_path / "papers.csv").write_text(content)
    out, err = done(f"hypergraph info papers.csv {options}")
    assert err == ""
    assert "4 vertices, 2 edges of size 2 to 3, 5 incidences" in out
