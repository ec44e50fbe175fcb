"""Errors of the library speak Python; the command line names its own options instead."""

import pytest

from biclique.cli import main
from biclique.cli.cluster_command import ClusterOptions
from biclique.cli.predict_command import PredictOptions
from biclique.exceptions import TableError, TableWarning
from biclique.tables.preparer import TablePreparer
from biclique.tables.reading import read_frame

CLUSTER = ClusterOptions(arguments=(), table="t.csv", n_clusters=3)
PREDICT = PredictOptions(arguments=(), table="t.csv", model="m.skops")


@pytest.mark.parametrize(
    ("options", "python", "words"),
    [
        (CLUSTER, "say so with decimal=','", "say so with --decimal ,"),
        (CLUSTER, "say so: header=True.", "say so: --header yes."),
        (CLUSTER, "name it with encoding=…", "name it with --encoding"),
        (CLUSTER, "column 'gram=dense' is text", "column 'gram=dense' is text"),  # a user's text stays
        (CLUSTER, "leave out columns with drop=….", "leave out columns with --drop."),
        (
            CLUSTER,
            "rescale the columns, for example with sklearn.preprocessing.StandardScaler.",
            "rescale the columns, for example with --scale standard.",
        ),
        (CLUSTER, "scale first (sklearn.preprocessing.StandardScaler)", "scale first (--scale standard)"),
        (CLUSTER, "shift the data (add -X.min() to X).", "shift the data."),
        (PREDICT, "leave it out with missing='drop'", "leave it out with --missing drop"),
    ],
)
def test_options_instead_of_parameters(options, python, words):
    assert options.in_words(python) == words


@pytest.mark.parametrize(
    ("text", "python", "command"),
    [
        ("name,x,y\na,1,2\nb,3,4\n", "TablePreparer(drop=['name'])", "t.csv -k 2 --id name\n"),
        (",x\n0,1\n1,2\n", "TablePreparer(drop=[''])", "t.csv -k 2 --id ''\n"),
        ("x,y\n1,2\n,3\n", "TablePreparer(missing='mean')", "t.csv -k 2 --missing mean\n"),
    ],
)
@pytest.mark.filterwarnings(f"ignore::{TableWarning.__module__}.TableWarning")
def test_each_side_speaks_its_own_language(text, python, command, capsys, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError) as caught:
        TablePreparer().fit(read_frame(tmp_path / "t.csv"))
    assert python in str(caught.value)
    assert "--" not in str(caught.value)
    assert main(["cluster", str(tmp_path / "t.csv"), "-k", "2"]) == 3
    err = capsys.readouterr().err
    assert err.endswith(command)
    assert "TablePreparer" not in err
