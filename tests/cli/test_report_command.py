import json
import re

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import biclique
from biclique.cli import main
from tests.report.made import groups


@pytest.fixture
def table(tmp_path):
    """A file with an id, three numbers and a class."""
    path = tmp_path / "data.csv"
    X = groups()
    lines = [f"<b>{row}</b>,{x:.6f},{y:.6f},{z:.6f},{'ab'[row % 2]}" for row, (x, y, z) in enumerate(X)]
    path.write_text("\n".join(["name,x,y,z,kind", *lines]) + "\n")
    return path


def test_cluster_writes_a_report(table, tmp_path, capsys):
    page = tmp_path / "out.html"
    command = ["cluster", str(table), "-k", "3", "--id", "name", "--label-column", "kind", "--report", str(page)]
    assert main(command) == 0
    assert f"report written to {page}" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "3 clusters" in text
    assert "data.csv</bdi></h1>" in text
    assert "biclique cluster" in text
    assert "\\u003cb\\u003e0\\u003c/b\\u003e" in text  # the id of a row
    assert ">kind<" in text  # the known classes are a column
    assert "made from 3 of these 4 columns" in text
    assert ">x<" in text


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--id", "name", "--drop", "kind"], [f"<b>{row}</b>" for row in range(120)]),
        (["--id", "name,kind", "--categorical", "kind"], [f"<b>{row}</b>" for row in range(120)]),
        (["--id", "name", "--drop", "kind", "--missing", "drop"], [f"<b>{row}</b>" for row in range(120) if row != 7]),
        (["--drop", "name", "--drop", "kind", "--missing", "drop"], [f"row {row}" for row in range(120) if row != 7]),
    ],
)
def test_rows_have_their_ids(table, tmp_path, options, names):
    """Also in a table of numbers and texts, and if rows are left out."""
    if "drop" in options:
        table.write_text(re.sub("(?m)^(<b>7</b>),[^,]*", r"\1,", table.read_text()))
    page = tmp_path / "out.html"
    command = ["cluster", str(table), "-k", "3", "--report", str(page)]
    assert main([*command, "-q", *options]) == 0
    data = re.search('(?s)id="data">(.*?)</script>', page.read_text(encoding="utf-8"))[1]
    assert json.loads(data)["ids"] == names


def test_a_saved_model_and_a_table_give_a_report(table, tmp_path, capsys):
    X = groups()
    model = make_pipeline(StandardScaler(), biclique.BicliqueSpectralClustering(3, random_state=0)).fit(X)
    biclique.save(model, tmp_path / "model.skops")
    command = ["report", str(tmp_path / "model.skops"), str(table), "--id", "name"]
    assert main(command) == 0
    assert f"report written to {tmp_path / 'data.html'}" in capsys.readouterr().out
    text = (tmp_path / "data.html").read_text(encoding="utf-8")
    assert "3 clusters" in text
    assert "made from 3 of these 4 columns" in text


def test_a_model_of_the_command_line_knows_its_scale_and_its_ids(table, tmp_path):
    model, page = tmp_path / "model.skops", tmp_path / "out.html"
    first = ["cluster", str(table), "-k", "3", "--id", "name", "--label-column", "kind", "--save", str(model), "-q"]
    assert main([*first, "--report", str(tmp_path / "first.html")]) == 0
    assert main(["report", str(model), str(table), "-o", str(page), "-q"]) == 0
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "first.html", page)]
    labels = [text.split('"labels":"')[1].split('"')[0] for text in texts]
    assert labels[0] == labels[1]
    assert all("\\u003cb\\u003e0\\u003c/b\\u003e" in text for text in texts)  # ids
    assert all("made from 3 of these 4 columns" in text for text in texts)


def test_rows_with_gaps_are_named(table, tmp_path, capsys):
    biclique.save(biclique.BicliqueSpectralClustering(3, random_state=0).fit(groups()), tmp_path / "model.skops")
    table.write_text(table.read_text().replace("<b>5</b>,", "<b>5</b>,NA;").replace("NA;", "NA,0,0,a\nx,1,"))
    lines = table.read_text().splitlines()
    table.write_text("\n".join(line for line in lines if line.count(",") == 4) + "\n")
    command = ["report", str(tmp_path / "model.skops"), str(table), "-o", str(tmp_path / "out.html")]
    assert main(command) == 3
    assert "leave such rows out with --missing drop" in capsys.readouterr().err
    assert main([*command, "--drop-missing"]) == 0
    assert "1 row with missing values left out" in (tmp_path / "out.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["cluster", "iris", "-k", "3", "--report", "out.txt"], 2, "must end in .html"),
        (["cluster", "iris", "-k", "3", "--report", "nowhere/out.html"], 2, "there is no folder"),
        (["report", "nothing.skops", "iris.csv", "-o", "out.txt"], 2, "must end in .html"),
        (["report", "nothing.skops", "iris.csv", "-o", "out.html"], 3, "nothing.skops"),
    ],
)
def test_what_cannot_be_written_or_read_is_refused_first(tmp_path, monkeypatch, capsys, command, code, words):
    monkeypatch.chdir(tmp_path)
    assert main(command) == code
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_a_report_is_named(table, tmp_path, capsys):
    biclique.save(biclique.BicliqueKernelKMeans(3, random_state=0).fit(groups()), tmp_path / "m.skops")
    assert main(["report", str(tmp_path / "m.skops"), str(table), "-o", str(tmp_path / "o.html")]) == 3
    assert "holds a BicliqueKernelKMeans" in capsys.readouterr().err
