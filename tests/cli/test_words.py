"""Errors of the readers speak Python; the command line says its own options instead."""

import pickle
import pkgutil
from importlib import import_module

import numpy as np
import pytest

import biclique.io
from biclique.cli import main
from biclique.cli.run import OPTIONS
from biclique.exceptions import Argument, BicliqueError, MemoryLimitError, TableError
from biclique.io import Roles, read_table
from tests.optional import needs


def test_every_word_of_python_has_an_option():
    modules = [import_module(f"biclique.io.{module.name}") for module in pkgutil.iter_modules(biclique.io.__path__)]
    words = {value for module in modules for value in vars(module).values() if isinstance(value, Argument)}
    assert words == set(OPTIONS)


def test_an_error_with_words_is_one_message():
    error = MemoryLimitError("x needs 2 GiB: raise ", Argument("memory_limit"), ".")
    again = pickle.loads(pickle.dumps(error))
    for one in (error, again):
        assert str(one) == "x needs 2 GiB: raise memory_limit."
        assert one.in_words(OPTIONS) == "x needs 2 GiB: raise --memory-limit."
    assert BicliqueError("memory_limit").in_words(OPTIONS) == "memory_limit"  # a user's text stays
    assert str(BicliqueError()) == ""


TEXT_COLUMN = "name,x,y\na,1,2\nb,3,4\n"


@pytest.mark.parametrize(
    ("text", "roles", "options", "python", "command"),
    [
        (TEXT_COLUMN, {}, [], "Roles(label=…), Roles(id=…) or Roles(drop=…).", "t.csv -k 2 --id name\n"),
        (",x\n0,1\n1,2\n", {}, [], "say so with Roles(id='')", "t.csv -k 2 --id ''\n"),
        (
            "x,y\n1,2\n,3\n",
            {},
            [],
            "out with drop_missing=True, or a",
            "t.csv -k 2 --missing mean\n",
        ),
        ("x,y\n1,2\n", {"label": "z"}, ["--label-column", "z"], ": Roles(label=…) names", ": --label-column names"),
        ("x,y\n1,2\n", {"id": "z"}, ["--id", "z"], ": Roles(id=…) names", ": --id names"),
        ("x,y\n1,2\n", {"drop": ["z"]}, ["--drop", "z"], ": Roles(drop=…) names", ": --drop names"),
    ],
)
def test_each_side_speaks_its_own_language(text, roles, options, python, command, capsys, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError) as caught:
        read_table(tmp_path / "t.csv", Roles(**roles))
    assert python in str(caught.value)
    assert "--" not in str(caught.value)
    assert main(["cluster", str(tmp_path / "t.csv"), "-k", "2", *options]) == 3
    err = capsys.readouterr().err
    assert command in err
    assert "Roles" not in err


@pytest.mark.parametrize("ending", ["csv", pytest.param("parquet", marks=needs("pyarrow"))])
def test_tables_that_do_not_fit(ending, capsys, tmp_path):
    path = tmp_path / f"t.{ending}"
    X = np.arange(20_000.0).reshape(-1, 2)
    if ending == "csv":
        np.savetxt(path, X, delimiter=",")
    else:
        pytest.importorskip("pandas").DataFrame(X, columns=["x", "y"]).to_parquet(path)
    with pytest.raises(
        MemoryLimitError, match=r"raise memory_limit, leave out columns, .* in chunks \(open_chunks\)\.$"
    ):
        read_table(path, memory_limit="10K")


@pytest.mark.parametrize(
    ("rows", "said"),
    [("1,2\n", "t.csv: only one row; a table needs"), ("1,\n,2\n3,4\n", "t.csv: only one row without missing values;")],
)
def test_a_table_of_one_row_is_refused_in_our_words(rows, said, capsys, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + rows)
    assert main(["cluster", str(tmp_path / "t.csv"), "-k", "2", "--missing", "drop"]) == 3
    assert said in capsys.readouterr().err
