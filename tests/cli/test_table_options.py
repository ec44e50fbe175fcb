"""Columns of a table, by options of the command line."""

import numpy as np
import pytest

from biclique.cli.table_options import command, names_of
from biclique.exceptions import TableError
from biclique.tables.diagnosis import Advice
from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import read_frame
from tests.calls import refuses
from tests.cli.conftest import lines_of, pasted

N = 30


@pytest.fixture
def people(tmp_path):
    """A table as people have it: an id, text, categories, dates, booleans and gaps."""
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


def test_two_runs_are_enough(done, explained, people):
    err = explained("cluster people.csv -k 3 --append -o out.csv")
    assert err.startswith("biclique: error: people.csv: of 8 columns, 4 are not numbers")
    looks = ["id: 30 different, such as '000x'", "category: 3 levels", "date: 2020-01-01", "text: 30", "mostly miss"]
    assert [words for words in looks if words not in err] == []
    assert pasted(err).startswith("cluster people.csv -k 3 --append -o out.csv ")
    out, err = done(pasted(err))
    assert "cluster 0 is city = 'Oslo', cluster 1 is city = 'Rome', all such rows and no others" in err
    assert f"{out}{err}".count("leave that column out?") == 1
    assert "30 rows, 5 columns" in out
    before, after = lines_of("people.csv"), lines_of("out.csv")
    assert after[0] == f"{before[0]},label,probability"
    assert all(b.startswith(a) for a, b in zip(before, after, strict=True))
    labels = np.array([line.split(",")[-2] for line in after[1:]])
    assert len(set(labels)) == 3
    assert all(len(set(labels[group::3])) == 1 for group in range(3))


def test_several_names_are_given_with_commas_or_by_the_option_again(cli, people):
    options = "cluster -k 3 --missing mean --categorical auto --dates drop -q -o l.npy"
    found = []
    for words in (
        "--drop 'key, note, fax' people.csv",
        "people.csv --drop key,note --drop fax",
        "people.csv --columns age,city,joined --columns member,weight",
    ):
        assert cli(f"{options} {words}") == (0, "", "")
        found.append(np.load("l.npy"))
    assert all(np.array_equal(one, found[0]) for one in found)


def test_ids_labels_and_weights(done, refused, people):
    columns = "cluster people.csv -k 3 --columns age --missing mean --label city"
    assert "Bern" in done(f"{columns} --id key,joined -o ids.csv")[0]
    assert lines_of("ids.csv")[0] == "key,joined,label"
    assert lines_of("ids.csv")[1].startswith("000x,2020-01-01,")
    error = refused(f"{columns} --weight key")
    assert (error[0], "row 1, column 'key': a weight is a number from 0 on, got '000x'" in error) == ("3", True)
    done(f"{columns} --weight weight -q")


@pytest.mark.parametrize(
    ("fields", "options", "place"),
    [
        ("5,-2e30", "--missing drop", "in row 3, column 'b'"),
        ("5,-2e30", "--missing drop --dask local", "in row 3, column 'b'"),
        ("5,-2", "--missing drop --affinity chi2 --gram nystroem", "in row 3, column 'b':"),
        (",", "--missing keep --affinity gower", "(rows 3), so"),
    ],
)
def test_rows_of_the_file_are_named_from_1_and_columns_by_name(cli, tmp_path, fields, options, place):
    (tmp_path / "t.csv").write_text(f"a,b\n1,\n3,4\n{fields}\n7,8\n1,3\n")
    code, _, err = cli(f"cluster t.csv -k 2 --scale none {options}")
    assert (code, place in err) == (3, True), err


def test_rows_of_a_table_to_predict_are_named_from_1(cli, done, refused, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n5,6\n7,8\n")
    (tmp_path / "new.csv").write_text("a,b\n1,\n3,4\n5,-2e30\n")
    done("cluster t.csv -k 2 --scale none --save m.skops -q")
    assert "first beyond 1e+18 in row 3, column 'b')" in refused("predict m.skops new.csv --missing drop")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--columns age,zz", "3 people.csv: --columns names column 'zz', which does not exist; columns: 'key', 'age'"),
        ("--id zz", "3 people.csv: --id names column 'zz'"),
        ("--weight zz", "3 people.csv: --weight names column 'zz'"),
        ("--label zz", "3 people.csv: --label-column names column 'zz'"),
        ("--columns age --missing mean --append -o l.npy", "2 cannot write l.npy: .npy holds labels alone"),
        ("--columns age --missing mean --id key,city -o l.npy", "3 cannot write l.npy: .npy holds labels alone"),
    ],
)
def test_errors(refused, people, options, message):
    assert refused(f"cluster people.csv -k 3 {options}").startswith(message)


def test_names_with_commas_and_dashes():
    assert names_of("t", "--drop", ["a,b"], ["a", "b", "a,b"]) == ["a,b"]
    assert names_of("t", "--drop", ["a, b", "c"], ["a", "b", "c"]) == ["a", "b", "c"]
    assert names_of("t", "--drop", ['"a,b",c'], ["a,b", "c"]) == ["a,b", "c"]
    assert names_of("t", "--id", [""], ["", "c"]) == [""]
    refuses(TableError, "--drop names column 'x'", names_of, "t", "--drop", ["a,x"], ["a"])
    advice = Advice(id=[""], drop=["-v", "a b", "c,d", "e"], dates="ordinal", date_order="day")
    pasted = command(["cluster", "t.csv"], advice)
    assert pasted == "biclique cluster t.csv --id '' '--drop=-v,a b,e' --drop c,d --date-order day --dates ordinal"


def test_gower_takes_categories_and_gaps_as_they_are(cli, done, people):
    options = "--columns age,city,weight --categorical city --affinity gower --save m.skops -o a.csv"
    out, err = done(f"cluster people.csv -k 3 {options}")
    assert err.count("is city =") == 2
    assert "30 rows, 3 columns, scale none" in out
    assert cli("predict m.skops people.csv -o b.csv -q") == (0, "", "")
    assert lines_of("a.csv") == lines_of("b.csv")
    groups = [line.split(",")[1] for line in lines_of("a.csv")[1:]]
    assert all(len({groups[i] for i in range(start, N, 3)}) == 1 for start in range(3))


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
        ("a;b;c", "{0},{1};1.07{1},{2};{2},{1} %", "", "such as '1.070,0'", "--decimal ,"),  # thousands and shares
        ("a,b", "{0},{6}", "", "b  numbers, but for 1 of 40: '1O' in row 5", "--drop b"),
    ],
)
def test_one_more_run_is_enough(done, explained, tmp_path, names, fields, given, words, advice):
    cells = [(i % 2 * 9, i % 5, i * 7 % 40, i, "" if i == 5 else f"{i % 6},5") for i in range(40)]
    rare = [("1.500" if i == 39 else f"{i % 2 * 9},5", "1O" if i == 4 else i * 7 % 11) for i in range(40)]
    lines = [fields.format(*row, *more) for row, more in zip(cells, rare, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join([names, *lines]) + "\n")
    err = explained(f"cluster t.csv -k 2 {given}")
    assert words in err
    assert (POINTS in err) == (words == POINTS)
    assert ("; it leaves out '" in err) == ("--drop" in advice)
    assert pasted(err).endswith(f"-k 2 {given} {advice.removeprefix(given).strip()}".replace("  ", " "))
    done(f"{pasted(err)} -q")


def test_a_category_that_may_be_the_answer_is_offered_as_label(done, explained, tmp_path):
    rows = [f"{i % 2 * 9 + i % 7 / 9:.2f},{'ab'[i % 2]},{'cd'[i % 4 // 2]}\n" for i in range(40)]
    (tmp_path / "t.csv").write_text("x,Truth,kind\n" + "".join(rows))
    assert "If Truth holds known classes, write --label Truth" in explained("cluster t.csv -k 2")
    err = explained("cluster t.csv -k 2 --label Truth")
    assert "known classes" not in err
    assert "error 0.0000" in done(pasted(err))[0]


@pytest.mark.parametrize("text", ["a b\n1 2\n3 4\n5 9\n", "id,note\nx1,so it is\nx2,as it was\nx3,in the end\n"])
def test_a_table_without_any_column_of_use_gets_no_command(explained, tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    err = explained("cluster t.csv -k 2")
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
def test_columns_that_only_name_the_rows_are_noted(done, tmp_path, names, fields, words):
    lines = [fields.format(i, i % 2 * 9 + i % 7 / 9, "ab"[i % 2], i * 7919 % 100_003) for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join([names, *lines]))
    _, err = done(f"cluster t.csv -k 2 {'--categorical kind' if 'kind' in names else ''}")
    assert err.count(words) == 1


def test_a_sheet_of_excel(done, tmp_path):
    pytest.importorskip("openpyxl")
    pd = pytest.importorskip("pandas")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        for sheet, n in (("First", 4), ("Last", 6)):
            pd.DataFrame({"x": [9.0 * i * i for i in range(n)]}).to_excel(book, sheet_name=sheet, index=False)
    out, err = done("cluster t.xlsx -k 2")
    assert ("4 rows" in out, "its sheets: 'First', 'Last'; --sheet chooses another" in err) == (True, True)
    assert "6 rows" in done("cluster t.xlsx -k 2 --sheet Last --save m.skops")[0]
    assert "6 rows" in done("predict m.skops t.xlsx --sheet Last")[0]


def test_kept_gaps_are_for_gower(done, refused, explained, people):
    error = refused("cluster people.csv -k 3 --missing keep")
    assert error.startswith("2 --missing keep is for --metric gower and --affinity gower")
    for gower in ("--metric gower", "--affinity gower"):
        err = explained(f"cluster people.csv -k 3 {gower} --drop note,fax")
        assert pasted(err).endswith("--id key --categorical city --dates ordinal")
        done(f"{pasted(err)} -q")
