"""``biclique cluster --save`` and ``biclique predict``: the labels of a fit, from a file; and ``biclique info``."""

import gzip
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import biclique
from biclique import BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.cli import main
from biclique.tables.reading import read_frame
from tests.cli.running import run


def write(path, X, names=("height", "weight"), extra=()):
    """A CSV of columns by name, and columns of text."""
    heads = [*names, *(name for name, _ in extra)]
    rows = [[*map(repr, map(float, row)), *(texts[i] for _, texts in extra)] for i, row in enumerate(X)]
    path.write_text("\n".join(",".join(cells) for cells in [heads, *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    return np.repeat([[0.0, 0.0], [900.0, 1.0], [0.0, 9.0]], 20, axis=0) + random.normal(size=(60, 2)) * [30, 0.3]


def labels_in(path):
    return [line.split(",")[1] for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
def test_the_rows_of_the_fit_get_their_labels_again(capsys, tmp_path, rows, scale):
    model, again = tmp_path / "m.skops", tmp_path / "again.csv"
    table = write(tmp_path / "t.csv", rows * [1 / 100, 1] if scale == "none" else rows)
    command = ["cluster", table, "-k", 3, "--scale", scale, "-o", tmp_path / "first.csv", "--save", model]
    code, out, _ = run(capsys, *command)
    assert code == 0
    assert f"model written to {model}: " in out
    code, out, err = run(capsys, "predict", model, table, "-o", again)
    assert (code, err) == (0, "")
    assert "60 rows labelled by" in out
    assert labels_in(again) == labels_in(tmp_path / "first.csv")


def test_columns_are_found_by_their_names_and_ids_are_written(capsys, tmp_path, rows):
    names = [("name", [f"n{i}" for i in range(60)])]
    first = write(tmp_path / "t.csv", rows, extra=names)
    model = tmp_path / "m.skops"
    assert main(["cluster", str(first), "-k", "3", "--id", "name", "--save", str(model), "-q"]) == 0
    other = write(tmp_path / "new.csv", rows[:, ::-1], ("weight", "height"), [*names, ("city", ["Rome"] * 60)])
    code, out, err = run(capsys, "predict", model, other, "-o", tmp_path / "l.csv", "--json")
    result = json.loads(out)
    assert (code, err, result["rows"], result["without_label"]) == (0, "", 60, 0)
    assert sorted(one["rows"] for one in result["clusters"]) == [20, 20, 20]
    assert (tmp_path / "l.csv").read_text().splitlines()[0].startswith("name,")
    assert len({*labels_in(tmp_path / "l.csv")[:20]}) == 1
    lacking = write(tmp_path / "lacking.csv", rows[:, :1], ("height",))
    code, out, err = run(capsys, "predict", model, lacking)
    assert (code, out) == (3, "")
    assert "column 'weight' was used in fit and is not there" in err


def test_models_of_python(capsys, tmp_path, rows):
    table = write(tmp_path / "t.csv", rows)
    model = BicliqueSpectralClustering(3, random_state=0).fit(StandardScaler().fit_transform(rows))
    biclique.save(model, tmp_path / "m")
    assert run(capsys, "predict", tmp_path / "m", table, "-q") == (0, "", "")
    biclique.save(BicliqueSpectralEmbedding(2).fit(StandardScaler().fit_transform(rows)), tmp_path / "e")
    code, _, err = run(capsys, "predict", tmp_path / "e", table)
    assert code == 2
    assert "a BicliqueSpectralEmbedding gives no labels" in err


def test_wrong_files_and_options(capsys, tmp_path, rows):
    table = write(tmp_path / "t.csv", rows)
    for arguments, expected, message in [
        (["predict", tmp_path / "none.skops", table], 3, "no such file"),
        (["predict", table, table], 3, "no model that biclique wrote"),
        (["predict", table, table, "-o", tmp_path / "x.doc"], 2, "its name must end in one of"),
        (["predict", table, table, "-o", table], 2, "is the input table itself"),
        (["cluster", table, "-k", 3, "--save", tmp_path / "none" / "m"], 2, "there is no folder"),
        (["cluster", table, "-k", 3, "--save", tmp_path], 2, "it is a folder"),
    ]:
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (expected, "", 1)
        assert message in err


def test_a_run_says_what_sets_clusters_apart_and_how_sure(capsys, tmp_path, rows):
    table = write(tmp_path / "t.csv", rows)
    code, out, _ = run(capsys, "cluster", table, "-k", 3)
    assert code == 0
    assert "sure" in out
    assert "set apart by" in out
    _, out, _ = run(capsys, "cluster", table, "-k", 3, "--json")
    result = json.loads(out)
    for entry in result["clusters"]:
        assert set(entry) == {"label", "rows", "probability", "set_apart_by"}
        assert 0.9 < entry["probability"] <= 1
        assert {one["column"] for one in entry["set_apart_by"]} == {"height", "weight"}
    tall = max(result["clusters"], key=lambda one: max(x["difference"] for x in one["set_apart_by"]))
    assert tall["set_apart_by"][0]["above"] is True
    assert result["saved"] is None


def test_biclique_alone(capsys):
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert [word in out for word in ("cluster", "select", "--save", "predict", "hypergraph", "info")] == [True] * 6
    assert max(map(len, out.splitlines())) <= 110


def test_info(capsys):
    code, out, err = run(capsys, "info")
    assert (code, err) == (0, "")
    for word in ("Python", "numpy", "threads", "BLAS", "CPU features", "memory", "devices", "extra tables"):
        assert word in out
    _, out, _ = run(capsys, "info", "--json")
    facts = json.loads(out)
    assert facts["biclique"] == biclique.__version__
    assert facts["free_memory_bytes"] > 0
    assert set(facts["extras"]) == {"tables", "dask", "plot", "neighbors", "fourier", "gpu", "hypergraph"}


@pytest.fixture
def saved(tmp_path, rows):
    """A model of the table t.csv, whose rows have ids that are no float64."""
    table = write(tmp_path / "t.csv", rows, extra=[("key", [f"00{10**18 + i}" for i in range(60)])])
    model = tmp_path / "m.skops"
    command = ["cluster", table, "-k", 3, "--id", "key", "--save", model, "-o", tmp_path / "first.csv", "-q"]
    assert main([str(part) for part in command]) == 0
    return model, table


@pytest.mark.parametrize("at_fit", [False, True])
def test_a_row_that_is_left_out_has_an_empty_label_beside_its_id(capsys, tmp_path, saved, at_fit):
    model, table = saved
    lines = table.read_text().splitlines()
    lines[4] = "," + lines[4].split(",", 1)[1]
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("\n".join(lines) + "\n")
    if at_fit:
        command = ["cluster", gaps, "-k", 3, "--id", "key", "--save", model, "--missing", "drop", "-q"]
        assert main([str(part) for part in command]) == 0
    else:
        code, _, err = run(capsys, "predict", model, gaps)
        assert (code, "missing value in row 4" in err) == (3, True)
    way = [] if at_fit else ["--drop-missing"]
    assert main(["predict", str(model), str(gaps), "-o", str(tmp_path / "l.csv"), "-q", *way]) == 0
    found = (tmp_path / "l.csv").read_text().splitlines()
    assert len(found) == 61
    assert found[4] == f"00{10**18 + 3},"
    assert [line.split(",")[1] for line in found].count("") == 1


def test_standard_input_and_output(capsys, tmp_path, monkeypatch, saved):
    model, table = saved
    for command, words in (
        (["predict", model, "-"], "standard input: 60 rows labelled"),
        (["report", model, "-", "-o", tmp_path / "page.html"], "report written to"),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(table.read_bytes())))
        code, out, err = run(capsys, *command)
        assert (code, err) == (0, "")
        assert words in out
    words = [sys.executable, "-m", "biclique", "predict", model, "-", "-o", "-"]
    done = subprocess.run(words, input=table.read_bytes(), capture_output=True, check=True)
    assert done.stdout == (tmp_path / "first.csv").read_bytes()  # with the ids as they stand in the table


@pytest.mark.parametrize("command", ["predict", "report"])
def test_a_model_remembers_how_its_table_was_written(capsys, tmp_path, monkeypatch, rows, command):
    monkeypatch.chdir(tmp_path)
    days = [f"{1 + i % 28}/{1 + i // 28}/2024" for i in range(60)]
    lines = [f"{a:.3f};{b:.3f};{day}\n".replace(".", ",") for (a, b), day in zip(rows, days, strict=True)]
    (tmp_path / "t.csv").write_bytes(("größe;gewicht;tag\n" + "".join(lines)).encode("latin-1"))
    given = ["--decimal", ",", "--encoding", "latin-1", "--date-order", "day", "--dates", "ordinal"]
    fit = ["cluster", "t.csv", "-k", 3, "-o", "first.csv", "--save", "m.skops", "-q", *given]
    assert run(capsys, *fit)[0] == 0
    target = "again.csv" if command == "predict" else "page.html"
    for form in (given[:6], []):
        assert run(capsys, command, "m.skops", "t.csv", "-o", target, "-q", *form) == (0, "", "")
        if command == "predict":
            assert (tmp_path / "again.csv").read_text() == (tmp_path / "first.csv").read_text()
    with_points = "größe;gewicht;tag\n" + "".join(lines).replace(",", ".")
    (tmp_path / "new.csv").write_text(with_points)
    code, _, err = run(capsys, command, "m.skops", "new.csv", "-o", target, "--encoding", "utf-8")
    assert code == 3
    assert "holds texts now" in err
    assert "read with --decimal , --date-order day, as the table of the fit: give the option with another" in err
    other = ["--encoding", "utf-8", "--decimal", "."]
    assert run(capsys, command, "m.skops", "new.csv", "-o", target, "-q", *other) == (0, "", "")
    if command == "predict":
        assert (tmp_path / "again.csv").read_text() == (tmp_path / "first.csv").read_text()


def test_names_that_are_numbers_are_remembered(capsys, tmp_path, rows):
    table, model = write(tmp_path / "t.csv", rows, ("2020", "2021")), tmp_path / "m.skops"
    assert main(["cluster", str(table), "-k", "3", "--header", "yes", "--save", str(model), "-q"]) == 0
    code, out, _ = run(capsys, "predict", model, table)
    assert (code, "60 rows labelled by" in out) == (0, True)


@pytest.mark.parametrize("noted", [{"decimal": "x", "header": 3, "jobs": "2"}, ["decimal"], "decimal", 1.5])
def test_notes_that_are_no_options_are_left_alone(capsys, tmp_path, rows, noted):
    model = tmp_path / "m.skops"
    biclique.save(BicliqueSpectralClustering(3, random_state=0).fit(rows * [0.01, 1]), model, notes={"text": noted})
    code, out, _ = run(capsys, "predict", model, write(tmp_path / "t.csv", rows * [0.01, 1]))
    assert (code, "60 rows labelled by" in out) == (0, True)


def test_a_decimal_comma_in_new_rows_is_named(capsys, tmp_path, saved):
    model, _ = saved
    other = tmp_path / "other.csv"
    other.write_text("height;weight\n1,5;2\n3;4\n")
    code, _, err = run(capsys, "predict", model, other)
    assert code == 3
    assert "holds texts now, such as '1,5': mend the values, or say how they are written with --decimal ," in err
    other.write_text("height;weight\n1,5;2\n1O;4\n")
    code, _, err = run(capsys, "predict", model, other, "--decimal", ",")
    assert code == 3
    assert "holds texts now, such as '1O': mend the values" in err


@pytest.mark.parametrize("option", ["--save t.csv", "-o l.csv --save l.csv", "--report p.html --save p.html"])
def test_cluster_never_writes_a_model_over_another_of_its_files(capsys, tmp_path, monkeypatch, rows, option):
    monkeypatch.chdir(tmp_path)
    text = write(tmp_path / "t.csv", rows).read_text()
    code, _, err = run(capsys, "cluster", "t.csv", "-k", 3, *option.split())
    assert code == 2
    assert "is another file of this command" in err
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    assert (tmp_path / "t.csv").read_text() == text


def test_predict_never_writes_over_its_model(capsys, tmp_path, saved):
    model, table = saved
    named = model.rename(tmp_path / "m.csv")
    before = named.read_bytes()
    code, _, err = run(capsys, "predict", named, table, "-o", named)
    assert (code, named.read_bytes()) == (2, before)
    assert "is another file of this command" in err


def test_several_ids_are_remembered_and_written(capsys, tmp_path, rows):
    ids = [("key", [f"{i:03}" for i in range(60)]), ("shop", ["a,b"] * 60)]
    table, model = tmp_path / "t.csv", tmp_path / "m.skops"
    write(table, rows, extra=[(name, [f'"{text}"' for text in texts]) for name, texts in ids])
    command = ["cluster", table, "-k", 3, "--id", "key,shop", "--save", model, "-o", tmp_path / "first.csv", "-q"]
    assert run(capsys, *command) == (0, "", "")
    assert run(capsys, "predict", model, table, "-o", tmp_path / "again.csv", "-q") == (0, "", "")
    lines = (tmp_path / "again.csv").read_text().splitlines()
    assert (tmp_path / "first.csv").read_text().splitlines() == lines
    assert (lines[0], lines[8][:10]) == ("key,shop,label", '007,"a,b",')
    one = ["predict", model, table, "--id", "shop", "-o", tmp_path / "one.csv", "-q"]
    assert run(capsys, *one) == (0, "", "")
    assert (tmp_path / "one.csv").read_text().splitlines()[0] == "shop,label"
    code, _, err = run(capsys, "predict", model, table, "-o", tmp_path / "l.npy")
    assert code == 3
    assert ".npy holds labels alone" in err
    code, _, err = run(capsys, "predict", model, table, "--id", "shops")
    assert code == 3
    assert "--id names column 'shops', which does not exist" in err


def test_a_table_is_written_back_with_predicted_labels(capsys, tmp_path, saved):
    model, table = saved
    lines = table.read_text().splitlines()
    lines[4] = "," + lines[4].split(",", 1)[1]
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("\n".join(lines) + "\n")
    output = tmp_path / "out.csv"
    assert run(capsys, "predict", model, gaps, "-o", output, "--append", "--drop-missing", "-q") == (0, "", "")
    found = output.read_text().splitlines()
    assert found[0] == lines[0] + ",label,probability"
    assert found[4] == lines[4] + ",,"
    expected = biclique.load(model).predict_proba(read_frame(table)).max(axis=1)
    kept = [line.split(",") for i, line in enumerate(found[1:]) if i != 3]
    np.testing.assert_allclose([float(cells[-1]) for cells in kept], np.delete(expected, 3), rtol=1e-5)
    assert [cells[-2] for cells in kept] == np.delete(labels_in(tmp_path / "first.csv"), 3).tolist()
    code, _, err = run(capsys, "predict", model, gaps, "--append")
    assert (code, "--append needs a file to write to" in err) == (2, True)
    code, _, err = run(capsys, "predict", model, gaps, "--append", "-o", tmp_path / "out.npy")
    assert code == 2
    assert ".npy holds labels alone" in err


@pytest.mark.parametrize("command", ["predict", "report"])
def test_predict_and_report_say_the_same_of_a_table(capsys, tmp_path, rows, command):
    model = tmp_path / "m.skops"
    biclique.save(BicliqueSpectralClustering(3, random_state=0).fit(rows * [0.01, 1]), model)
    target = ["-o", tmp_path / "page.html"] if command == "report" else []
    code, _, err = run(capsys, command, model, write(tmp_path / "w.csv", np.c_[rows, rows], "abcd"), *target)
    assert (code, "has 4 columns of numbers, and the model was fitted with 2" in err) == (3, True)
    X = rows.copy()
    X[7, 1] = np.nan
    code, _, err = run(capsys, command, model, write(tmp_path / "g.csv", X), *target)
    assert code == 3
    assert "missing value in row 8, column 'weight' (NaN), 1 of 60 rows have one: leave such rows out with --m" in err


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".npy", ".npz", ".parquet", ".zarr"])
def test_one_row_is_predicted_and_not_clustered(capsys, tmp_path, rows, ending):
    model, table = tmp_path / "m.skops", tmp_path / f"one{ending}"
    biclique.save(BicliqueSpectralClustering(3, random_state=0).fit(rows * [0.01, 1]), model)
    one = (rows * [0.01, 1])[30:31]
    text = "\t".join(map(repr, map(float, one[0])))
    match ending:
        case ".npy":
            np.save(table, one)
        case ".npz":
            np.savez(table, X=one)
        case ".parquet":
            pa = pytest.importorskip("pyarrow")
            pytest.importorskip("pyarrow.parquet").write_table(pa.table({"a": one[:, 0], "b": one[:, 1]}), table)
        case ".zarr":
            pytest.importorskip("zarr").save_array(str(table), one)
        case ".csv.gz":
            table.write_bytes(gzip.compress(text.replace("\t", ",").encode()))  # no line end, no names
        case _:
            table.write_text("a\tb\n".replace("\t", "," if ending == ".csv" else "\t"))
            table.write_text(table.read_text() + text.replace("\t", "," if ending == ".csv" else "\t"))
    label = biclique.load(model).predict(one)[0]
    assert run(capsys, "predict", model, table, "-o", tmp_path / "l.csv", "-q") == (0, "", "")
    assert (tmp_path / "l.csv").read_text() == f"row,label\n0,{label}\n"
    code, _, err = run(capsys, "cluster", table, "-k", 2)
    assert code == 3
    assert "only one row; a table needs at least 2 rows to be clustered: add rows, or label it by a saved" in err


def test_too_few_rows_say_what_to_do(capsys, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b\n1,\n,2\n3,4\n")
    code, _, err = run(capsys, "cluster", table, "-k", 2, "--missing", "drop")
    assert code == 3
    assert "only one row without missing values; a table needs at least 2 rows to be clustered: fill the gaps" in err
    table.write_text("red,2.5\n")
    code, _, err = run(capsys, "cluster", table, "-k", 2)
    assert code == 3
    assert "its only line was read as names of columns. If it is a row, say so with --header no." in err
