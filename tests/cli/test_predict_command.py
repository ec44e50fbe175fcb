"""``biclique cluster --save`` and ``biclique predict``: the labels of a fit, from a file; and ``biclique info``."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import biclique
from biclique import BicliqueSpectralClustering, BicliqueSpectralEmbedding
from biclique.tables.reading import read_frame
from tests.cli.conftest import lines_of

RANDOM = np.random.default_rng(0)
X = np.repeat([[0.0, 0.0], [900.0, 1.0], [0.0, 9.0]], 20, axis=0) + RANDOM.normal(size=(60, 2)) * [30, 0.3]
NEAR = X * [0.01, 1]
"""The same in columns of like scales."""
KEYS = [f"00{10**18 + i}" for i in range(60)]
"""Ids that are no float64."""


def write(name, rows=X, names=("height", "weight"), **extra):
    """A CSV of columns by name, and columns of text."""
    lines = [[*map(repr, map(float, row)), *(texts[i] for texts in extra.values())] for i, row in enumerate(rows)]
    Path(name).write_text("\n".join(",".join(cells) for cells in [[*names, *extra], *lines]) + "\n")


def labels_in(name):
    return [line.split(",")[1] for line in lines_of(name)[1:]]


@pytest.fixture
def model(cli):
    """m.skops, which knows no names of columns."""
    biclique.save(BicliqueSpectralClustering(3, random_state=0).fit(NEAR), "m.skops")


@pytest.fixture
def saved(cli):
    """m.skops, a model of the table t.csv with its ids."""
    write("t.csv", key=KEYS)
    assert cli("cluster t.csv -k 3 --id key --save m.skops -o first.csv -q") == (0, "", "")


@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
def test_the_rows_of_the_fit_get_their_labels_again(done, scale):
    write("t.csv", NEAR if scale == "none" else X)
    assert "model written to m.skops: " in done(f"cluster t.csv -k 3 --scale {scale} -o first.csv --save m.skops")[0]
    out, err = done("predict m.skops t.csv -o again.csv")
    assert (err, "60 rows labelled by" in out) == ("", True)
    assert labels_in("again.csv") == labels_in("first.csv")


def test_columns_are_found_by_their_names_and_ids_are_written(facts, refused, saved):
    write("new.csv", X[:, ::-1], ("weight", "height"), key=KEYS, city=["Rome"] * 60)
    result = facts("predict m.skops new.csv -o l.csv")
    assert (result["rows"], result["without_label"]) == (60, 0)
    assert sorted(one["rows"] for one in result["clusters"]) == [20, 20, 20]
    assert lines_of("l.csv") == lines_of("first.csv")
    write("lacking.csv", X[:, :1], ("height",))
    assert "column 'weight' was used in fit and is not there" in refused("predict m.skops lacking.csv")


def test_models_of_python(cli, refused):
    write("t.csv")
    scaled = StandardScaler().fit_transform(X)
    biclique.save(BicliqueSpectralClustering(3, random_state=0).fit(scaled), "m")
    assert cli("predict m t.csv -q") == (0, "", "")
    biclique.save(BicliqueSpectralEmbedding(2).fit(scaled), "e")
    assert refused("predict e t.csv").startswith("2 e: a BicliqueSpectralEmbedding gives no labels")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("predict none.skops t.csv", "3 none.skops: no such file"),
        ("predict t.csv t.csv", "no model that biclique wrote"),
        ("predict t.csv t.csv -o x.doc", "2 cannot write x.doc: its name must end in one of"),
        ("predict t.csv t.csv -o t.csv", "2 --output t.csv is another file of this command"),
        ("predict t.csv new.csv -o t.csv", "2 --output t.csv is another file of this command"),  # the model
        ("cluster t.csv -k 3 --save none/m", "2 cannot write none/m: there is no folder"),
        ("cluster t.csv -k 3 --save .", "2 cannot write .: it is a folder"),
        *(
            (f"cluster t.csv -k 3 {files}", "is another file of this command")
            for files in ("--save t.csv", "-o l.csv --save l.csv", "--report p.html --save p.html")
        ),
    ],
)
def test_wrong_files_and_options(refused, arguments, message):
    write("t.csv")
    text = Path("t.csv").read_text()
    assert message in refused(arguments)
    assert [path.name for path in Path.cwd().iterdir()] == ["t.csv"]
    assert Path("t.csv").read_text() == text


def test_a_run_says_what_sets_clusters_apart_and_how_sure(done, facts):
    write("t.csv")
    out, _ = done("cluster t.csv -k 3")
    assert ("sure" in out, "set apart by" in out) == (True, True)
    result = facts("cluster t.csv -k 3")
    for entry in result["clusters"]:
        assert set(entry) == {"label", "rows", "probability", "set_apart_by"}
        assert 0.9 < entry["probability"] <= 1
        assert {one["column"] for one in entry["set_apart_by"]} == {"height", "weight"}
    tall = max(result["clusters"], key=lambda one: max(x["difference"] for x in one["set_apart_by"]))
    assert tall["set_apart_by"][0]["above"] is True
    assert result["saved"] is None


def test_biclique_alone(done):
    out, err = done("")
    assert err == ""
    assert [word for word in ("cluster", "select", "--save", "predict", "hypergraph", "info") if word not in out] == []
    assert max(map(len, out.splitlines())) <= 110


def test_info(done, facts):
    out, err = done("info")
    assert err == ""
    words = ("Python", "numpy", "threads", "BLAS", "CPU features", "memory", "devices", "extra tables")
    assert [word for word in words if word not in out] == []
    found = facts("info")
    assert found["biclique"] == biclique.__version__
    assert found["free_memory_bytes"] > 0
    assert set(found["extras"]) == {"tables", "dask", "plot", "neighbors", "fourier", "gpu", "hypergraph"}


@pytest.fixture
def gaps(saved):
    """gaps.csv: t.csv without the height of its fourth row."""
    lines = lines_of("t.csv")
    lines[4] = "," + lines[4].split(",", 1)[1]
    Path("gaps.csv").write_text("\n".join(lines) + "\n")
    return lines


@pytest.mark.parametrize("at_fit", [False, True])
def test_a_row_that_is_left_out_has_an_empty_label_beside_its_id(done, refused, gaps, at_fit):
    if at_fit:
        done("cluster gaps.csv -k 3 --id key --save m.skops --missing drop -q")
    else:
        assert "missing value in row 4" in refused("predict m.skops gaps.csv")
    way = "" if at_fit else "--drop-missing"
    done(f"predict m.skops gaps.csv -o l.csv -q {way}")
    found = lines_of("l.csv")
    assert (len(found), found[4]) == (61, f"{KEYS[3]},")
    assert [line.split(",")[1] for line in found].count("") == 1


def test_standard_input_and_output(cli, monkeypatch, saved):
    table = Path("t.csv").read_bytes()
    for command, words in (
        ("predict m.skops -", "standard input: 60 rows labelled"),
        ("report m.skops - -o page.html", "report written to"),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(table)))
        code, out, err = cli(command)
        assert (code, err, words in out) == (0, "", True)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(table)))
    assert cli("predict m.skops - -o - -q") == (0, Path("first.csv").read_text(), "")  # ids as they stand in the table


@pytest.mark.parametrize(("command", "target"), [("predict", "again.csv"), ("report", "page.html")])
def test_a_model_remembers_how_its_table_was_written(cli, refused, command, target):
    days = [f"{1 + i % 28}/{1 + i // 28}/2024" for i in range(60)]
    lines = "".join(f"{a:.3f};{b:.3f};{day}\n".replace(".", ",") for (a, b), day in zip(X, days, strict=True))
    Path("t.csv").write_bytes(f"größe;gewicht;tag\n{lines}".encode("latin-1"))
    given = "--decimal , --encoding latin-1 --date-order day"
    assert cli(f"cluster t.csv -k 3 -o first.csv --save m.skops -q --dates ordinal {given}")[0] == 0

    def check(options):
        assert cli(f"{command} m.skops {options} -o {target} -q") == (0, "", "")
        assert command == "report" or lines_of(target) == lines_of("first.csv")

    check(f"t.csv {given}")
    check("t.csv")
    Path("new.csv").write_text(f"größe;gewicht;tag\n{lines.replace(',', '.')}", encoding="utf-8")
    error = refused(f"{command} m.skops new.csv -o {target} --encoding utf-8")
    assert "holds texts now" in error
    assert "read with --decimal , --date-order day, as the table of the fit: give the option with another" in error
    check("new.csv --encoding utf-8 --decimal .")


def test_names_that_are_numbers_are_remembered(done):
    write("t.csv", X, ("2020", "2021"))
    done("cluster t.csv -k 3 --header yes --save m.skops -q")
    assert "60 rows labelled by" in done("predict m.skops t.csv")[0]


@pytest.mark.parametrize("noted", [{"decimal": "x", "header": 3, "jobs": "2"}, ["decimal"], "decimal", 1.5])
def test_notes_that_are_no_options_are_left_alone(done, noted):
    biclique.save(BicliqueSpectralClustering(3, random_state=0).fit(NEAR), "m.skops", notes={"text": noted})
    write("t.csv", NEAR)
    assert "60 rows labelled by" in done("predict m.skops t.csv")[0]


def test_several_ids_are_remembered_and_written_as_they_stand(cli, refused):
    write("t.csv", key=[f"{i:03}" for i in range(60)], shop=['"a,b"'] * 60)
    assert cli("cluster t.csv -k 3 --id key,shop --save m.skops -o first.csv -q") == (0, "", "")
    assert cli("predict m.skops t.csv -o again.csv -q") == (0, "", "")
    lines = lines_of("again.csv")
    assert lines_of("first.csv") == lines
    assert (lines[0], lines[8][:10]) == ("key,shop,label", '007,"a,b",')
    assert cli("predict m.skops t.csv --id shop -o one.csv -q") == (0, "", "")
    assert lines_of("one.csv")[0] == "shop,label"
    assert refused("predict m.skops t.csv -o l.npy").startswith("3 cannot write l.npy: .npy holds labels alone")
    assert "--id names column 'shops', which does not exist" in refused("predict m.skops t.csv --id shops")


def test_a_table_is_written_back_with_predicted_labels(cli, refused, gaps):
    assert cli("predict m.skops gaps.csv -o out.csv --append --drop-missing -q") == (0, "", "")
    found = lines_of("out.csv")
    assert found[0] == gaps[0] + ",label,probability"
    assert found[4] == gaps[4] + ",,"
    expected = biclique.load("m.skops").predict_proba(read_frame("t.csv")).max(axis=1)
    kept = [line.split(",") for i, line in enumerate(found[1:]) if i != 3]
    np.testing.assert_allclose([float(cells[-1]) for cells in kept], np.delete(expected, 3), rtol=1e-5)
    assert [cells[-2] for cells in kept] == np.delete(labels_in("first.csv"), 3).tolist()
    assert refused("predict m.skops gaps.csv --append").startswith("2 --append needs a file to write to")
    assert ".npy holds labels alone" in refused("predict m.skops gaps.csv --append -o out.npy")


@pytest.mark.parametrize("command", ["predict m.skops t.csv", "report m.skops t.csv -o page.html"])
def test_predict_and_report_say_the_same_of_a_table(refused, model, command):
    write("t.csv", np.c_[X, X], "abcd")
    assert "3 t.csv: has 4 columns of numbers, and the model was fitted with 2" in refused(command)
    rows = X.copy()
    rows[7, 1] = np.nan
    write("t.csv", rows)
    error = "missing value in row 8, column 'weight' (NaN), 1 of 60 rows have one: leave such rows out with --missing d"
    assert error in refused(command)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".npy"])
def test_one_row_is_predicted_and_not_clustered(cli, refused, model, ending):
    table, one = f"one{ending}", NEAR[30:31]
    fields = ",".join(map(repr, one[0].tolist()))
    match ending:
        case ".npy":
            np.save(table, one)
        case ".csv.gz":
            Path(table).write_bytes(gzip.compress(fields.encode()))  # no line end, no names
        case _:
            Path(table).write_text(f"a,b\n{fields}")
    label = biclique.load("m.skops").predict(one)[0]
    assert cli(f"predict m.skops {table} -o l.csv")[1].startswith(f"{table}: 1 row labelled by m.skops")
    assert Path("l.csv").read_text() == f"row,label\n0,{label}\n"
    error = "only one row; a table needs at least 2 rows to be clustered: add rows, or label it by a saved"
    assert error in refused(f"cluster {table} -k 2")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,\n,2\n3,4\n", "--missing drop", "only one row without missing values; a table needs at least 2 rows"),
        ("a,b\n1,\n,2\n3,4\n", "--missing drop", "to be clustered: fill the gaps"),
        ("red,2.5\n", "", "its only line was read as names of columns. If it is a row, say so with --header no."),
    ],
)
def test_too_few_rows_say_what_to_do(refused, tmp_path, text, options, message):
    (tmp_path / "t.csv").write_text(text)
    error = refused(f"cluster t.csv -k 2 {options}")
    assert (error[0], message in error) == ("3", True)
