"""Columns of a table, by options of the command line."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from biclique.cli.table_options import command, names_of
from biclique.exceptions import TableError
from biclique.tables.diagnosis import Advice
from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import read_frame
from tests.cli.running import run

N = 30


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A table as people have it: an id, text, categories, dates, booleans and gaps."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    lines = ["key,age,city,joined,member,note,fax,weight"]
    for i in range(N):
        group = i % 3
        age = "" if i == 7 else f"{20 + 20 * group + draw.normal():.1f}"
        city = "NA" if i == 9 else ("Bern", "Oslo", "Rome")[group]
        fax = "1" if i < 2 else ""
        cells = [f"{i:03d}x", age, city, f"202{group}-01-{1 + i % 28:02d}", "true" if i % 2 else "false"]
        lines.append(",".join([*cells, f"note no. {i}", fax, str(1 + group)]))
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "people.csv"


def test_two_runs_are_enough(capsys, people):
    code, out, err = run(capsys, "cluster", "people.csv", "-k", 3, "--append", "-o", "out.csv")
    assert (code, out) == (3, "")
    assert err.startswith("biclique: error: people.csv: of 8 columns, 4 are not numbers")
    for words in (
        "id: 30 different, such as '000x'",
        "category: 3 levels",
        "date: 2020-01-01",
        "text: 30",
        "mostly miss",
    ):
        assert words in err
    paste = err.splitlines()[-1].strip()
    assert paste.startswith("biclique cluster people.csv -k 3 --append -o out.csv ")
    code, out, err = run(capsys, *shlex.split(paste)[1:])
    assert (code, err) == (0, "")
    assert "30 rows, 5 columns" in out
    before, after = (Path(name).read_text().splitlines() for name in ("people.csv", "out.csv"))
    assert after[0] == f"{before[0]},label,probability"
    assert all(b.startswith(a) for a, b in zip(before, after, strict=True))
    labels = np.array([line.split(",")[-2] for line in after[1:]])
    assert len(set(labels)) == 3
    assert all(len(set(labels[group::3])) == 1 for group in range(3))


def test_rows_left_out_have_an_empty_label(capsys, people):
    columns = ["--columns", "age,city", "--categorical", "city"]
    arguments = [*columns, "--missing", "drop", "--append", "-o", "out.csv", "-q"]
    assert run(capsys, "cluster", people, "-k", 3, *arguments) == (0, "", "")
    after = (people.parent / "out.csv").read_text().splitlines()
    assert len(after) == N + 1
    assert [i for i, line in enumerate(after[1:]) if line.endswith(",,")] == [7, 9]


def test_several_names_are_given_with_commas_or_spaces_and_the_table_is_given_back(capsys, people):
    options = ["--missing", "mean", "--categorical", "auto", "--dates", "drop", "-q", "-o", "l.npy"]
    assert run(capsys, "cluster", "-k", 3, *options, "--drop", "key, note, fax", "people.csv") == (0, "", "")
    first = np.load("l.npy")
    for words in (
        ["people.csv", "--drop", "key,note", "--drop", "fax"],
        ["people.csv", "--drop", "key", "note", "fax"],
        ["--drop", "key", "note", "fax", "people.csv"],
    ):
        assert run(capsys, "cluster", "-k", 3, *options, *words) == (0, "", "")
        assert np.array_equal(np.load("l.npy"), first)
    assert run(capsys, "cluster", "-k", 3, "-q", "--missing", "mean", "--columns", "age", "people.csv") == (0, "", "")
    with pytest.raises(SystemExit):
        run(capsys, "cluster", "-k", 3, "--drop", "key")
    assert "arguments are required: TABLE" in capsys.readouterr().err


def test_ids_labels_and_weights(capsys, people):
    columns = ["--columns", "age", "--missing", "mean", "--label", "city"]
    code, out, _ = run(capsys, "cluster", people, "-k", 3, *columns, "--id", "key,joined", "-o", "ids.csv")
    assert code == 0
    assert "Bern" in out
    assert Path("ids.csv").read_text().splitlines()[:1] == ["key,joined,label"]
    assert Path("ids.csv").read_text().splitlines()[1].startswith("000x,2020-01-01,")
    code, _, err = run(capsys, "cluster", people, "-k", 3, *columns, "--weight", "key")
    assert code == 3
    assert "row 1, column 'key': a weight is a number from 0 on, got '000x'" in err
    assert run(capsys, "cluster", people, "-k", 3, *columns, "--weight", "weight", "-q")[0] == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--columns", "age,zz"], 3, "--columns names column 'zz', which does not exist; columns: 'key', 'age'"),
        (["--id", "zz"], 3, "--id names column 'zz'"),
        (["--weight", "zz"], 3, "--weight names column 'zz'"),
        (["--label", "zz"], 3, "--label-column names column 'zz'"),
        (["--columns", "age", "--missing", "mean", "--append", "-o", "l.npy"], 2, ".npy holds labels alone"),
        (["--columns", "age", "--missing", "mean", "--id", "key,city", "-o", "l.npy"], 3, ".npy holds labels alone"),
    ],
)
def test_errors(capsys, people, options, code, message):
    found, out, err = run(capsys, "cluster", people, "-k", 3, *options)
    assert (found, out) == (code, "")
    assert message in err


def test_names_with_commas_and_dashes():
    assert names_of("t", "--drop", ["a,b"], ["a", "b", "a,b"]) == ["a,b"]
    assert names_of("t", "--drop", ["a, b", "c"], ["a", "b", "c"]) == ["a", "b", "c"]
    assert names_of("t", "--drop", ['"a,b",c'], ["a,b", "c"]) == ["a,b", "c"]
    assert names_of("t", "--id", [""], ["", "c"]) == [""]
    with pytest.raises(TableError, match="--drop names column 'x'"):
        names_of("t", "--drop", ["a,x"], ["a"])
    advice = Advice(id=[""], drop=["-v", "a b", "c,d", "e"], dates="ordinal")
    pasted = command(["cluster", "t.csv"], advice)
    assert pasted == "biclique cluster t.csv --id '' '--drop=-v,a b,e' --drop c,d --dates ordinal"


def test_gower_takes_categories_and_gaps_as_they_are(capsys, people):
    options = ["--columns", "age,city,weight", "--categorical", "city", "--affinity", "gower", "--save", "m.skops"]
    code, out, err = run(capsys, "cluster", people, "-k", 3, *options, "-o", "a.csv")
    assert (code, err) == (0, "")
    assert "30 rows, 3 columns, scale none" in out
    assert run(capsys, "predict", "m.skops", people, "-o", "b.csv", "-q") == (0, "", "")
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    groups = [line.split(",")[1] for line in Path("a.csv").read_text().splitlines()[1:]]
    assert all(len({groups[i] for i in range(start, N, 3)}) == 1 for start in range(3))


def test_dates_with_the_year_last(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    days = [f"{1 + i % 28:02}/{1 + i % 12:02}/{2000 + i % 2 * 20}" for i in range(60)]
    Path("t.csv").write_text("x,day\n" + "".join(f"{i % 2 * 9 + i % 7 / 9},{day}\n" for i, day in enumerate(days)))
    code, _, err = run(capsys, "cluster", "t.csv", "-k", 2, "--save", "m.skops", "-o", "a.csv")
    assert code == 3
    assert "date written day/month/year, such as '13/01/2000': say so with --date-order day" in err
    paste = shlex.split(err.splitlines()[-1])
    assert paste[-4:] == ["--date-order", "day", "--dates", "ordinal"]
    assert run(capsys, *paste[1:], "-q") == (0, "", "")
    assert run(capsys, "predict", "m.skops", "t.csv", "-o", "b.csv", "-q") == (0, "", "")  # it remembers the order
    assert Path("a.csv").read_text() == Path("b.csv").read_text()


def test_dates_with_the_year_last_for_a_model_of_other_dates(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dates = [(2000 + i % 2 * 20, 1 + i % 12, 1 + i % 28) for i in range(60)]
    for name, form in (("iso.csv", "{0}-{1:02}-{2:02}"), ("t.csv", "{2:02}/{1:02}/{0}")):
        days = [form.format(*date) for date in dates]
        Path(name).write_text("x,day\n" + "".join(f"{i % 2 * 9 + i % 7 / 9},{day}\n" for i, day in enumerate(days)))
    fit = ["cluster", "iso.csv", "-k", 2, "--dates", "ordinal", "--save", "m.skops", "-o", "a.csv", "-q"]
    assert run(capsys, *fit) == (0, "", "")
    code, _, err = run(capsys, "predict", "m.skops", "t.csv")
    assert code == 3
    assert "held dates in fit and holds texts now, such as '01/01/2000': mend the values, or say how" in err
    assert run(capsys, "predict", "m.skops", "t.csv", "--date-order", "day", "-o", "b.csv", "-q") == (0, "", "")
    assert Path("a.csv").read_text() == Path("b.csv").read_text()


POINTS = "numbers with a decimal point: a file is read with one decimal sign"
SEVERAL_WAYS = "a  numbers written in several ways, such as '0,5' and '1.500'"


@pytest.mark.parametrize(
    ("names", "fields", "given", "words", "advice"),
    [
        ("a;b", "{0},5;{2},25", "", "--decimal ,", "--decimal ,"),
        ("a;b;c", "{0},{1};{2}.{1};{2}", "", POINTS, "--drop b --decimal ,"),
        ("a;b;c", "{0},{1};{2}.0;{2}", "", POINTS, "--drop b --decimal ,"),  # whole numbers, with a point in the text
        ("a;b;c;d", "{0},{1};{2}.{1};{2}.5;{1}", "", POINTS, "--drop a"),  # fewer columns have a comma
        ("a,b,c,name", '"{0},{1}",{2}.{1},{2},n{3}', "", POINTS, "--id name --drop b --decimal ,"),
        ("a;b;c", "{0},{1};{2},{1};{4}", "", "decimal", "--decimal , --missing mean"),  # a gap
        ("a;b", "{5};{2},25", "--decimal ,", SEVERAL_WAYS, "--decimal , --drop a"),
        ("a,b", "{0},{6}", "", "b  numbers, but for 1 of 40: '1O' in row 4 (from 0)", "--drop b"),
    ],
)
def test_one_more_run_is_enough(capsys, tmp_path, monkeypatch, names, fields, given, words, advice):
    monkeypatch.chdir(tmp_path)
    cells = [(i % 2 * 9, i % 5, i * 7 % 40, i, "" if i == 5 else f"{i % 6},5") for i in range(40)]
    rare = [("1.500" if i == 39 else f"{i % 2 * 9},5", "1O" if i == 4 else i * 7 % 11) for i in range(40)]
    lines = [fields.format(*row, *more) for row, more in zip(cells, rare, strict=True)]
    Path("t.csv").write_text("\n".join([names, *lines]) + "\n")
    code, _, err = run(capsys, "cluster", "t.csv", "-k", 2, *given.split())
    assert code == 3
    assert words in err
    assert (POINTS in err) == (words == POINTS)
    assert err.splitlines()[-1].endswith(f"-k 2 {given} {advice.removeprefix(given).strip()}".replace("  ", " "))
    assert run(capsys, *shlex.split(err.splitlines()[-1])[1:], "-q")[0] == 0


@pytest.mark.parametrize("text", ["a b\n1 2\n3 4\n5 9\n", "id,note\nx1,so it is\nx2,as it was\nx3,in the end\n"])
def test_a_table_without_any_column_of_use_gets_no_command(capsys, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(text)
    code, _, err = run(capsys, "cluster", "t.csv", "-k", 2)
    assert code == 3
    assert "No column would be left: write the values as numbers" in err.splitlines()[-1]
    assert "This deals with" not in err
    with pytest.raises(TableError, match="No column would be left") as caught:
        TablePreparer().fit(read_frame("t.csv"))
    assert "TablePreparer(" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "fields", "words"),
    [
        ("n,x", "{0},{1:.3f}", "column 'n' only counts the rows: leave it out"),
        ("n,x,kind", "{0},{1:.3f},{2}", "column 'n' only counts the rows: leave it out"),
        ("customer_id,x", "{3},{1:.3f}", "column 'customer_id' looks like an id"),
    ],
)
def test_columns_that_only_name_the_rows_are_noted(capsys, tmp_path, monkeypatch, names, fields, words):
    monkeypatch.chdir(tmp_path)
    lines = [fields.format(i, i % 2 * 9 + i % 7 / 9, "ab"[i % 2], i * 7919 % 100_003) for i in range(40)]
    Path("t.csv").write_text("\n".join([names, *lines]))
    more = ["--categorical", "kind"] if "kind" in names else []
    code, _, err = run(capsys, "cluster", "t.csv", "-k", 2, *more)
    assert (code, err.count(words)) == (0, 1)


def test_kept_gaps_are_for_gower(capsys, people):
    code, _, err = run(capsys, "cluster", people, "-k", 3, "--missing", "keep")
    assert (code, "--missing keep is for --metric gower and --affinity gower" in err) == (2, True)
    for gower in (["--metric", "gower"], ["--affinity", "gower"]):
        code, _, err = run(capsys, "cluster", people, "-k", 3, *gower, "--drop", "note,fax")
        assert code == 3
        assert err.splitlines()[-1].endswith("--id key --categorical city --dates ordinal")
        assert run(capsys, *shlex.split(err.splitlines()[-1])[1:], "-q")[0] == 0
