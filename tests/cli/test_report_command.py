import json
import re
from pathlib import Path

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import biclique
from biclique.cli import options
from tests.report.made import groups

IDS = [f"<b>{row}</b>" for row in range(120)]
SHOWN_ID = "\\u003cb\\u003e0\\u003c/b\\u003e"
"""The id of the first row, as it stands in a page."""


@pytest.fixture
def table(tmp_path):
    """A file with an id, three numbers and a class."""
    lines = [f"{key},{x:.6f},{y:.6f},{z:.6f}," for key, (x, y, z) in zip(IDS, groups(), strict=True)]
    text = "\n".join(["name,x,y,z,kind", *(f"{line}{'ab'[row % 2]}" for row, line in enumerate(lines))]) + "\n"
    (tmp_path / "data.csv").write_text(text)
    return text


def page(name):
    return Path(name).read_text(encoding="utf-8")


def test_cluster_writes_a_report(done, table):
    out, _ = done("cluster data.csv -k 3 --id name --label-column kind --report out.html")
    assert "report written to out.html" in out
    text = page("out.html")
    known_classes = ">kind<"  # are a column
    words = ["3 clusters", "data.csv</bdi></h1>", "biclique cluster", SHOWN_ID, known_classes, ">x<"]
    assert [word for word in [*words, "made from 3 of these 4 columns"] if word not in text] == []


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("--id name --drop kind", IDS),
        ("--id name,kind --categorical kind", IDS),
        ("--id name --drop kind --missing drop", [key for key in IDS if key != "<b>7</b>"]),
        ("--drop name --drop kind --missing drop", [f"row {row}" for row in range(120) if row != 7]),
    ],
)
def test_rows_have_their_ids(done, table, options, names):
    """Also in a table of numbers and texts, and if rows are left out."""
    if "missing" in options:
        Path("data.csv").write_text(re.sub("(?m)^(<b>7</b>),[^,]*", r"\1,", table))
    done(f"cluster data.csv -k 3 --report out.html -q {options}")
    data = re.search('(?s)id="data">(.*?)</script>', page("out.html"))[1]
    assert json.loads(data)["ids"] == names


def test_a_saved_model_and_a_table_give_a_report(done, table):
    model = make_pipeline(StandardScaler(), biclique.BicliqueSpectralClustering(3, random_state=0)).fit(groups())
    biclique.save(model, "model.skops")
    assert done("report model.skops data.csv --id name")[0] == "report written to data.html\n"
    assert "3 clusters" in page("data.html")
    assert "made from 3 of these 4 columns" in page("data.html")


def test_a_model_of_the_command_line_knows_its_scale_and_its_ids(done, table):
    done("cluster data.csv -k 3 --id name --label-column kind --save model.skops -q --report first.html")
    done("report model.skops data.csv -o out.html -q")
    texts = [page("first.html"), page("out.html")]
    labels = [text.split('"labels":"')[1].split('"')[0] for text in texts]
    assert labels[0] == labels[1]
    assert all(SHOWN_ID in text and "made from 3 of these 4 columns" in text for text in texts)


@pytest.mark.parametrize(
    "command", ["cluster data.csv -k 3 --id name --drop kind --report out.html", "report m data.csv"]
)
def test_a_report_tells_how_far_it_is(cli, table, monkeypatch, command):
    biclique.save(biclique.BicliqueSpectralClustering(3, random_state=0).fit(groups()), "m")
    monkeypatch.setattr(options, "PLAIN_SECONDS", 1)  # a line for each step
    assert "biclique: the report 40%" in cli(command)[2]
    assert cli(f"{command} -q") == (0, "", "")


def test_rows_with_gaps_are_named(done, refused, table):
    biclique.save(biclique.BicliqueSpectralClustering(3, random_state=0).fit(groups()), "model.skops")
    Path("data.csv").write_text(re.sub("(?m)^(<b>5</b>),[^,]*", r"\1,NA", table))
    assert "leave such rows out with --missing drop" in refused("report model.skops data.csv -o out.html")
    for option in ("--drop-missing", "--missing drop"):
        done(f"report model.skops data.csv -o out.html {option}")
        assert "1 row with missing values left out" in page("out.html")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("cluster iris -k 3 --report out.txt", "2 cannot write out.txt: the name of a report must end in .html"),
        ("cluster iris -k 3 --report nowhere/out.html", "2 cannot write nowhere/out.html: there is no folder"),
        ("report nothing.skops iris.csv -o out.txt", "2 cannot write out.txt: the name of a report must end in .html"),
        ("report nothing.skops iris.csv -o out.html", "3 nothing.skops"),
    ],
)
def test_what_cannot_be_written_or_read_is_refused_first(refused, tmp_path, command, message):
    assert refused(command).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_a_report_is_named(refused, table):
    biclique.save(biclique.BicliqueKernelKMeans(3, random_state=0).fit(groups()), "m.skops")
    assert "3 m.skops holds a BicliqueKernelKMeans" in refused("report m.skops data.csv -o o.html")
