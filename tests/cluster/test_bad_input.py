"""Rubbish in: an error or a warning that names the argument and the way out."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import adjusted_rand_score

from biclique import (
    BicliqueKernelKMeans,
    BicliqueSpectralClustering,
    BicliqueSpectralEmbedding,
    HypergraphSpectralClustering,
    InhomogeneousSubspaceClustering,
)
from biclique.exceptions import (
    ColumnSpreadWarning,
    DataError,
    DegreeError,
    FewerClustersWarning,
    ParameterError,
    RankWarning,
)
from tests.calls import refuses
from tests.case_names import without_address
from tests.optional import Optional

pd = Optional("pandas")

RNG = np.random.default_rng(0)
GOOD = RNG.normal(size=(40, 3))
GOOD.setflags(write=False)  # an input is never written to


def with_value(value, row=7, column=1):
    X = GOOD.copy()
    X[row, column] = value
    return X


def fit(X, k=3, sample_weight=None, **parameters):
    return BicliqueSpectralClustering(k, random_state=0, **parameters).fit(X, sample_weight=sample_weight)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            with_value(np.nan),
            r"X contains NaN: 1 missing values, the first in row 7, column 1, counted from 0\. Drop those rows",
        ),
        (with_value(np.inf), r"X contains infinity, the first in row 7, column 1"),
        (
            with_value(1e30),
            r"values up to 1e\+30 .* in row 7, column 1, counted from 0\), whose squares overflow: rescale",
        ),
        (GOOD * 1e-155, r"no value beyond .*e-155, and such squares vanish: rescale"),
        (pd.DataFrame(with_value(np.nan), columns=["u", "v", "w"]), r"row 7, column 1 \('v'\)"),
        (
            pd.DataFrame(with_value(np.inf), index=range(1, 41)),
            r"in row 7 \(index 8\), column 1, counted from 0:",
        ),
        (sparse.csr_array(with_value(np.nan)), r"X contains NaN.*row 7, column 1"),
        (np.empty((0, 3)), "0 sample"),
        (GOOD[:1], "1 sample"),
        (GOOD[:2], r"X has 2 rows, fewer than n_clusters=3: ask for at most 2 clusters"),
        (GOOD[0], "Expected 2D array, got 1D array"),
        (GOOD[None], "dim 3"),
        (np.empty((10, 0)), "0 feature"),
        (np.array([["a", "b"]] * 5), r"X holds text \(could not convert string to float: .*OneHotEncoder"),
        (GOOD * 1j, "Complex data not supported"),
        ("t.csv", r"X is a path \('t\.csv'\), .* pandas\.read_csv, or with dask\.dataframe\.read_csv"),
        (Path("t.npy"), r"X is a path \('t\.npy'\)"),
        ("t.xlsx", r"X is a path \('t\.xlsx'\).*pandas\.read_excel\.$"),
    ],
)
def test_bad_rows(X, message):
    refuses(ValueError, message, fit, X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(40), r"sample_weight must be finite and not negative, got -1 in row 0, counted from 0: a weight"),
        (np.r_[np.nan, np.ones(39)], "sample_weight must be finite"),
        (np.ones(39), r"one number per row, shape \(40,\), got shape \(39,\)"),
        (np.zeros(40), "zero in every row"),
        (["heavy"] * 40, "sample_weight must be numbers"),
        (np.r_[1, 1, np.zeros(38)], r"2 rows of positive weight \(of 40\), fewer than n_clusters=3"),
        *((np.full(40, size), "divide it by its mean") for size in (1e-170, 1e155, 1e300)),  # of their squares
    ],
)
def test_bad_weights(weights, message):
    refuses(DataError, message, fit, GOOD, sample_weight=weights)


def test_predict_wants_the_training_width():
    with pytest.raises(ValueError, match="X has 2 features, but BicliqueSpectralClustering is expecting 3"):
        fit(GOOD).predict(GOOD[:, :2])
    K = GOOD @ GOOD.T + 10
    with pytest.raises(ValueError, match=r"X has 39 features, but .* is expecting 40"):
        fit(K, affinity="precomputed").predict(K[:, :39])


def test_all_rows_equal_embed_as_zero():
    with pytest.warns(RankWarning, match="1 informative columns, 3 were asked for"):
        embedding = BicliqueSpectralEmbedding(2).fit(np.ones((10, 2))).embedding_
    assert (embedding == 0).all()
    with pytest.warns(RankWarning, match="informative columns, 11 were asked for"):
        BicliqueSpectralEmbedding(10).fit(GOOD[:5])


@pytest.mark.parametrize("assign", ["kmeans", "cluster_qr", "discretize"])
@pytest.mark.parametrize("distinct", [1, 3])
def test_fewer_distinct_rows_than_clusters_warns(assign, distinct):
    X = np.repeat(np.array([[1.0, 1.0], [2.0, 1.0], [1.0, 6.0]])[:distinct], 6, axis=0)
    message = rf"{distinct} cluster{'s' * (distinct > 1)} returned, 5 asked for: X has only {distinct} distinct rows"
    with pytest.warns(FewerClustersWarning, match=message):
        model = fit(X, k=5, assign_labels=assign)
    assert [len(set(group)) for group in model.labels_.reshape(distinct, 6)] == [1] * distinct
    assert len(set(model.labels_)) == distinct
    assert model.embedding_.shape == (6 * distinct, 5)
    assert np.array_equal(model.predict(X), model.labels_)
    assert set(model.predict([[1.0, 1.0], [50.0, 3.0]])) <= set(range(distinct))


@pytest.mark.parametrize("affinity", ["neighborhoods", "rbf"])
@pytest.mark.parametrize("kind", [BicliqueSpectralClustering, BicliqueKernelKMeans])
def test_unscaled_columns_are_named_with_numbers(kind, affinity):
    frame = pd.DataFrame(load_wine().data, columns=load_wine().feature_names)
    with pytest.warns(ColumnSpreadWarning, match=r"differ \d+ ×: column 12 \('proline'\) spans .*StandardScaler"):
        kind(3, affinity=affinity, random_state=0).fit(frame)


def test_columns_on_one_scale_do_not_warn():
    fit(load_digits().data[:300], k=10)
    rarely = (np.arange(100) == 3) * 1e-6
    fit(np.column_stack([RNG.normal(size=(100, 3)), rarely]))


@pytest.mark.parametrize("order", [2, 4, 1e6, np.inf])
@pytest.mark.parametrize("seed", range(6))
def test_a_total_that_is_only_rounding_is_refused(order, seed):
    X = np.random.default_rng(seed).normal(size=(200, 3)) + [3, 1, 2]
    with pytest.raises(DegreeError, match=r"(not above zero|not positive).*affinity='rbf'.*shift the data"):
        fit(X - X.mean(axis=0), affinity="linear", order=order)


@pytest.mark.filterwarnings("ignore::biclique.exceptions.BicliqueWarning")
@pytest.mark.parametrize("distance", [1e6, 1e9, 1e12])
def test_an_outlier_far_away_does_not_spoil_the_rest(distance):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 2)) + c for c in ([0, 0], [12, 0], [0, 12])] + [np.array([[distance, 0]])])
    X[:, 1] += np.linspace(0, 1e-3, 151)
    for parameters in ({}, {"affinity": "rbf", "gram": "dense"}, {"affinity": "rbf", "gram": "tiled"}):
        labels = fit(X, k=3, **parameters).labels_
        assert adjusted_rand_score(labels[:150], np.repeat([0, 1, 2], 50)) > 0.95
    labels = fit(np.concatenate([X[:100], X[:100] + [distance, 0]]), k=4).labels_  # groups keep their own structure
    assert adjusted_rand_score(labels, np.repeat([0, 1, 2, 3], 50)) > 0.95


@pytest.mark.parametrize(("affinity", "gram"), [("neighborhoods", "auto"), ("rbf", "dense"), ("rbf", "tiled")])
def test_units_of_any_size_give_the_same_labels(affinity, gram):
    for unit in (1e-50, 1e-12, 1e12):
        found, plain = fit(GOOD * unit, affinity=affinity, gram=gram), fit(GOOD, affinity=affinity)
        assert np.array_equal(found.labels_, plain.labels_)
    K = np.exp(-((GOOD[:, None] - GOOD) ** 2).sum(axis=2))
    for unit in (1e-120, 1e40):
        found, plain = fit(unit * K, affinity="precomputed"), fit(K, affinity="precomputed")
        assert np.array_equal(found.labels_, plain.labels_)


@pytest.mark.parametrize(
    "model", [HypergraphSpectralClustering(n_clusters=2), InhomogeneousSubspaceClustering(n_clusters=2, subspace_dim=1)]
)
def test_every_estimator_names_text_and_missing_values(model):
    with pytest.raises(DataError, match=r"X holds text \(could not convert string to float: .*OneHotEncoder"):
        model.fit(np.array([["a", "b"]] * 5))
    with pytest.raises(
        DataError, match=r"X contains NaN: 1 missing values, the first in row 7, column 1, counted from 0\. Drop those"
    ):
        model.fit(with_value(np.nan))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"town": ["x", "y"] * 20}, r"X holds text .* in column 1 \('town'\): .*biclique\.tables\.TablePreparer"),
        ({"town": pd.Categorical(["x", "y"] * 20), "flag": [True, False] * 20}, r"column 1 \('town'\).*TablePreparer"),
        ({"gap": [np.nan] + [1.0] * 39}, r"row 0, column 1 \('gap'\).*biclique\.tables\.TablePreparer.*'gower'"),
        ({"huge": [10**400] + [1] * 39}, r"a whole number beyond 1e308 in column 1 \('huge'\): rescale or drop"),
        (
            {"far": [np.inf] + [1.0] * 39},
            r"infinity, the first in row 0, column 1 \('far'\), counted from 0: remove or replace",
        ),
    ],
)
def test_a_column_that_is_not_numbers_is_named_with_the_way_out(columns, message):
    refuses(DataError, message, fit, pd.DataFrame({"a": GOOD[:, 0], **columns}))


def test_what_is_no_table_is_named_with_the_way_out():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(DataError, match=r"Graph of networkx.*to_scipy_sparse_array\(X\), with affinity='precomputed'"):
        fit(networkx.path_graph(5))


NEGATIVE = np.where(np.arange(40)[:, None] == 17, -5, np.abs(GOOD) + 1)
PRECOMPUTED = {"k": 2, "affinity": "precomputed"}


@pytest.mark.parametrize(
    ("X", "parameters", "error", "message"),
    [
        (np.ones((5, 4)), PRECOMPUTED, DataError, r"square matrix .*, got X of shape \(5, 4\)"),
        (np.full((3, 3), np.nan), PRECOMPUTED, DataError, "NaN"),
        (
            NEGATIVE,
            {"affinity": "chi2"},
            DataError,
            "'chi2' needs non-negative X, got -5 in row 17, column 0, counted from 0: shift",
        ),
        (NEGATIVE, {"affinity": "linear", "order": 2}, DegreeError, r"1 of 40 rows .* \(rows 17; lowest"),
        (GOOD, {"affinity": lambda a, b: float(a[0])}, DataError, r"must be symmetric, but rows \d+ and \d+ give"),
        (GOOD, {"affinity": lambda a, b: np.nan}, DataError, "a finite number for every pair"),
        (GOOD, {"affinity": "rfb"}, ParameterError, r"got 'rfb': did you mean 'rbf'\?"),
        (GOOD, {"assign_labels": "discretise"}, ParameterError, r"did you mean 'discretize'\?"),
        (GOOD, {"affinity": "xyz"}, ParameterError, r"got 'xyz'\.$"),
        (GOOD, {"order": 1.5}, ParameterError, "at least 2, got 1.5: order 2 is the ordinary graph cut"),
        (GOOD, {"k": "auto"}, ParameterError, r"whole number of at least 1, got 'auto': 'select' chooses it"),
    ],
    ids=without_address,
)
def test_what_does_not_go_with_a_parameter_is_named(X, parameters, error, message):
    refuses(error, message, fit, X, **parameters)
