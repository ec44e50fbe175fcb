"""Dates and spans of time are no numbers: every estimator refuses them and names the columns."""

from datetime import date, timedelta

import numpy as np
import pytest

from biclique.cluster.clustering import BicliqueSpectralClustering
from biclique.cluster.embedding import BicliqueSpectralEmbedding
from biclique.cluster.hypergraph_clustering import HypergraphSpectralClustering
from biclique.cluster.kernel_kmeans import BicliqueKernelKMeans
from biclique.cluster.subspace_clustering import InhomogeneousSubspaceClustering
from biclique.exceptions import DataError
from biclique.hypergraph import modelling_gram
from biclique.hypergraph.hypergraph import Hypergraph
from biclique.rows.checks import check_weights
from tests.calls import refuses

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

NUMBERS = np.arange(20.0) % 2 * 3 + np.random.default_rng(0).random(20)
DAYS = [date(2024, 1, 1) + timedelta(i) for i in range(20)]
STAMPS = pd.date_range("2024-01-01", periods=20)
ARRAY = STAMPS.to_numpy()
FIRST = r"X holds dates or times in column 0 \('when'\): drop such columns or turn them into numbers"
PLACE = "X holds dates or times in column 0: drop such columns or turn them into numbers"

BAD = {
    "pandas, all": (
        pd.DataFrame({"when": STAMPS, "until": STAMPS}),
        r"column 0 \('when'\), column 1 \('until'\): drop",
    ),
    "pandas, among others": (pd.DataFrame({"when": STAMPS, "x": NUMBERS}), FIRST),
    "pandas, time zone": (pd.DataFrame({"when": STAMPS.tz_localize("UTC")}), FIRST),
    "pandas, spans": (pd.DataFrame({"when": STAMPS - STAMPS[0]}), FIRST),
    "pandas, periods": (pd.DataFrame({"when": STAMPS.to_period("D"), "x": NUMBERS}), FIRST),
    "pandas, objects": (pd.DataFrame({"when": pd.Series(DAYS, dtype=object), "x": NUMBERS}), FIRST),
    "pandas, Arrow": (pd.DataFrame({"when": pd.array(DAYS, dtype=pd.ArrowDtype(pa.date32())), "x": NUMBERS}), FIRST),
    "polars, all": (pl.DataFrame({"when": DAYS}), FIRST),
    "polars, among others": (pl.DataFrame({"when": DAYS, "x": NUMBERS}), FIRST),
    "polars, spans": (pl.DataFrame({"when": [day - DAYS[0] for day in DAYS], "x": NUMBERS}), FIRST),
    "Arrow": (pa.table({"when": DAYS, "x": NUMBERS}), FIRST),
    "NumPy": (np.column_stack([ARRAY, ARRAY]), "in column 0, column 1: drop"),
    "NumPy, spans": ((ARRAY - ARRAY[0])[:, None], PLACE),
    "NumPy, objects": (np.column_stack([np.array(DAYS, dtype=object), NUMBERS]), PLACE),
    "NumPy, many": (np.repeat(ARRAY[:, None], 12, axis=1), "column 9 and 2 more: drop"),
    "lists": ([[np.datetime64(day), 1.5] for day in DAYS], PLACE),
}
MODELS = [
    BicliqueSpectralClustering(2, random_state=0),
    BicliqueSpectralEmbedding(2),
    BicliqueKernelKMeans(2),
    HypergraphSpectralClustering(2),
    InhomogeneousSubspaceClustering(2, subspace_dim=1),
]


@pytest.mark.parametrize("case", list(BAD))
def test_dates_are_refused_with_their_columns(case):
    X, message = BAD[case]
    refuses(DataError, message, BicliqueSpectralClustering(2, random_state=0).fit, X)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_estimator_refuses_dates(model):
    refuses(DataError, "column 0, column 1: drop such columns", model.fit, np.column_stack([ARRAY, ARRAY]))
    refuses(DataError, r"column 0 \('when'\)", model.fit, pl.DataFrame({"when": DAYS, "x": NUMBERS}))


def test_new_rows_with_dates_are_refused():
    model = BicliqueSpectralClustering(2, random_state=0).fit(pl.DataFrame({"when": NUMBERS}))
    refuses(DataError, FIRST, model.predict, pl.DataFrame({"when": DAYS}))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_booleans_and_columns_called_date_stay_numbers(frame):
    high = NUMBERS > 2
    labels = BicliqueSpectralClustering(2, random_state=0).fit(frame({"date": NUMBERS, "time": high})).labels_
    assert np.array_equal(labels == labels[0], high == high[0])
    only = BicliqueSpectralClustering(2, random_state=0).fit(frame({"a": high, "b": high})).labels_
    assert np.array_equal(only == only[0], high == high[0])


def test_incidences_and_points_of_modellings_are_no_dates_either():
    dates = np.column_stack([ARRAY, ARRAY])
    with pytest.raises(DataError, match="the incidence matrix must be real numbers, got dates or times"):
        Hypergraph.from_incidence(dates)
    refuses(DataError, "X must be real numbers, got dates or times", modelling_gram, dates, "max")


@pytest.mark.parametrize("weight", [np.datetime64("2020-01-01", "s"), np.timedelta64(3, "s"), 1 + 2j])
def test_weights_are_no_dates_and_not_complex(weight):
    refuses(DataError, "sample_weight must be numbers, one for each row, got", check_weights, np.full(3, weight), 3)
