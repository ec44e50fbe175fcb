"""TablePreparer for tables in chunks: the same as for the whole table."""

import numpy as np
import pytest

from biclique.exceptions import ParameterError, TableError
from biclique.io import TablePreparer, prepare_chunks
from biclique.io.columns import ColumnsError
from biclique.io.prepare_chunks import PreparedChunks, fit_chunks
from biclique.io.sources import Moments
from tests.io.test_prepare import OPTIONS, mixed, table


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(prepare_chunks, "ROWS", 5)


@pytest.mark.parametrize("missing", ["drop", "mean", "indicator"])
@pytest.mark.parametrize("scale", ["standard", "none"])
def test_one_pass_gives_what_the_whole_table_gives(missing, scale):
    some = table(**mixed(), same=[3.0] * 12)
    options = {**OPTIONS, "drop": ["key", "day"]}
    whole = TablePreparer(**options, missing=missing, scale=scale).fit(some)
    chunked = TablePreparer(**options, missing=missing, scale=scale)
    fit_chunks(chunked, some)
    expected, kept = whole.transform_rows(some)
    source = PreparedChunks(some, chunked)
    np.testing.assert_allclose(np.concatenate([c.copy() for c in source.chunks(5)]), expected, atol=1e-12)
    assert source.columns == whole.get_feature_names_out().tolist()
    assert source.kept.tolist() == kept.tolist()
    assert source.n_rows == len(expected)
    assert [text for texts in source.texts("key") for text in texts] == mixed()["key"]


def test_moments_are_those_of_all_rows():
    X = np.random.default_rng(0).normal(size=(40, 3)) + [0, 1e6, -3]
    X[::7, 0] = np.nan
    found = Moments.none(3)
    for part in np.array_split(X, 6):
        found += Moments.of_values(part)
    np.testing.assert_allclose(found.mean, np.nanmean(X, axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.squares / found.n, np.nanvar(X, axis=0), rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"missing": "median"},
            "missing='median' needs every value of a column at once, .*: use missing='mean', or read",
        ),
        ({"scale": "robust"}, "scale='robust' needs every value"),
        ({"categorical": "auto"}, "categorical='auto' needs a look at the whole table, .*: name the columns"),
    ],
)
def test_what_needs_the_whole_table_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        fit_chunks(TablePreparer(**options), table(x=[1.0, 2.0]))


def test_gaps_and_texts_in_chunks():
    late = table(x=[1.0] * 8 + [None], y=np.arange(9.0) ** 2)
    with pytest.raises(TableError, match="missing value in row 9, column 'x'"):
        fit_chunks(TablePreparer(), late)
    with pytest.raises(ColumnsError, match="category: 2 levels"):
        fit_chunks(TablePreparer(), table(x=[1.0] * 8, c=["a", "b"] * 4))
    with pytest.raises(TableError, match="every row has a missing value"):
        fit_chunks(TablePreparer(missing="drop"), table(x=[1.0, None], y=[None, 1.0]))
    with pytest.raises(TableError, match="infinite value"):
        fit_chunks(TablePreparer(missing="mean"), table(x=[1.0, np.inf]))
