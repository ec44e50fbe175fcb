"""Estimators with affinity="gower": tables of numbers and categories, with gaps."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DataError, GapsWarning, ParameterError
from biclique.kernels import Columns, Gower
from biclique.selection import order_path
from tests.calls import refuses
from tests.data import mixed
from tests.optional import Optional, needs
from tests.oracles import algorithm_1, gower_kernel

pd = Optional("pandas")
pl = Optional("polars")
da = Optional("dask.array")

MASK = np.array([False, False, True, True, True])
CODES = [2, 3, 4]
PRECISIONS = ("float32", "float64")
NEIGHBORHOODS = {"affinity": "neighborhoods"}


def model(k=3, categorical=CODES, affinity="gower", **parameters):
    """Clusters by Gower's kernel, or by neighbourhoods with its metric."""
    gower = Gower(categorical)
    way = {"affinity": gower} if affinity == "gower" else {"affinity": affinity, "kernel_params": {"metric": gower}}
    return BicliqueSpectralClustering(k, **{**way, "random_state": 0, **parameters})


def quiet(estimator, X, **parameters):
    with warnings.catch_warnings(action="ignore", category=GapsWarning):
        return estimator.fit(X, **parameters)


@pytest.mark.parametrize("gaps", [0.0, 0.15])
@pytest.mark.parametrize(
    "options",
    [NEIGHBORHOODS, *({"gram": g, "precision": p} for g in ("dense", "tiled", "nystroem") for p in PRECISIONS)],
)
def test_every_way_of_holding_finds_the_groups_and_its_own_labels_again(options, gaps):
    X, y = mixed(gaps=gaps)
    fitted = quiet(model(**options), X)
    assert adjusted_rand_score(fitted.labels_, y) > 0.9
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)
    np.testing.assert_allclose(fitted.transform(X), fitted.embedding_, atol=1e-5)
    new, y_new = mixed(30, gaps, seed=1)
    assert adjusted_rand_score(fitted.predict(new), y_new) > 0.8
    np.testing.assert_allclose(fitted.predict_proba(new).sum(axis=1), 1.0)


@pytest.mark.parametrize("options", [{}, NEIGHBORHOODS])
def test_weights_are_repeats_and_a_row_of_weight_zero_does_not_widen_a_range(options):
    X, _ = mixed(40, 0.1)
    counts = np.arange(40) % 3
    X = np.array(X)
    X[0, 0] = 1e4  # of weight 0
    weighted = quiet(model(**options), X, sample_weight=counts)
    repeated = quiet(model(**options), np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-9)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    assert weighted._fitted.chosen.columns.high[0] < 10


@pytest.mark.parametrize("options", [{}, NEIGHBORHOODS])
def test_ranges_are_those_of_the_fit_and_units_do_not_matter(options):
    X, _ = mixed()
    fitted = model(**options).fit(X)  # columns are a million times apart, and nothing warns
    other = model(**options).fit(X * [1e-6, 1e-6, 1, 1, 1] + [0, 7, 0, 0, 0])
    np.testing.assert_array_equal(fitted.labels_, other.labels_)
    np.testing.assert_allclose(fitted.embedding_, other.embedding_, atol=1e-8)
    np.testing.assert_array_equal(fitted.predict(X[:1]), fitted.predict(X)[:1])  # alone, a row has no range


@pytest.mark.parametrize("rows", [np.arange(12.0).reshape(12, 1) // 4, np.eye(12)[:, :5]])
def test_tables_of_categories_alone(rows):
    fitted = quiet(model(2, categorical=np.ones(rows.shape[1], bool), gamma=1.0), rows)
    assert len(set(fitted.labels_)) == 2


@pytest.mark.parametrize("options", [{}, NEIGHBORHOODS])
def test_ways_to_name_the_columns_agree(options):
    X, _ = mixed(60)
    expected = model(**options).fit(X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    typed = frame.astype({"c": "category", "d": "category", "e": "category"})
    small = pl.DataFrame({name: X[:, j] for j, name in enumerate("abcde")})
    ways = [(MASK, X), (MASK.tolist(), X), (tuple(CODES), X), (list("cde"), frame), (np.array(list("cde")), small)]
    for asked, table in [*ways, ("from_dtype", typed)]:
        found = model(categorical=asked, **options).fit(table)
        np.testing.assert_array_equal(found.embedding_, expected.embedding_)
        assert np.flatnonzero(found._fitted.chosen.columns.categorical).tolist() == CODES
        np.testing.assert_array_equal(found.predict(table), expected.labels_)
    with pytest.raises(ParameterError, match="has 'z', which is not a column of X: the columns are 'a', 'b'"):
        model(categorical=["z"], **options).fit(frame)


def test_stability_and_profile_of_a_frame():
    X, _ = mixed(60)
    frame = pd.DataFrame(X, columns=list("abcde"))
    fitted = model(categorical=list("cde")).fit(frame)
    assert (fitted.cluster_stability(frame, n_splits=2) > 0.8).all()
    assert [len(rows) for rows in fitted.representatives(frame, 2)] == [2, 2, 2]


@pytest.mark.parametrize("options", [{"gram": "nystroem", "rank": 40, "order": 2}, NEIGHBORHOODS])
@needs("dask")
def test_chunks_take_one_pass_for_the_ranges(options):
    X, _ = mixed()
    whole = model(**options).fit(X)
    rows = da.from_array(X, chunks=(50, -1))
    chunked = model(**options).fit(rows)
    np.testing.assert_array_equal(chunked.labels_.compute(), whole.labels_)
    np.testing.assert_array_equal(chunked.predict(rows).compute(), whole.labels_)


@needs("dask")
@pytest.mark.parametrize(
    ("value", "words"), [(0.5, "column 3 has 0.5 in row 70"), (np.nan, "NaN: .* row 70, column 3")]
)
def test_chunks_with_gaps_or_bad_codes_are_refused_in_words(value, words):
    X = np.array(mixed()[0])
    X[70, 3] = value
    refuses(DataError, words, model().fit, da.from_array(X, chunks=(50, -1)))


def test_rows_that_are_like_no_other_go_to_the_nearest_by_gower_distance():
    X, _ = mixed(60, 0.1)
    with warnings.catch_warnings(action="ignore"):
        fitted = model(2, gamma=5000.0, order=2).fit(X)
        far = quiet(model(3, gamma=5000.0, order=2, gram="nystroem", rank=50), X)
    assert len(set(fitted.labels_)) == 2
    new = np.array([X[1], X[2]]) + [0.3, 0, 0, 0, 0]  # κ of both is zero everywhere
    np.testing.assert_array_equal(fitted.predict(new), fitted.labels_[[1, 2]])
    assert far.predict(new).shape == (2,)


# Gaps


def test_rows_without_a_column_in_common_have_a_warning():
    X = np.array(mixed(40)[0])
    X[3, 2:], X[5, :2] = np.nan, np.nan
    with pytest.warns(GapsWarning, match=r"^1 pair of rows has no column in common \(such as rows 3 and 5\).*be 1"):
        model().fit(X)


@pytest.mark.parametrize("options", [{}, NEIGHBORHOODS])
def test_columns_without_a_value_have_a_warning_and_rows_without_one_are_refused(options):
    X = np.array(mixed(40)[0])
    X[:, 1] = np.nan
    with pytest.warns(GapsWarning, match=r"1 of 5 columns have no value at all \(1\)"):
        fitted = model(**options).fit(X)
    rest = model(categorical=[1, 2, 3], **options).fit(np.delete(X, 1, axis=1))
    np.testing.assert_array_equal(fitted.labels_, rest.labels_)
    alone = np.array([[np.nan, 4.0, np.nan, np.nan, np.nan]])
    with pytest.raises(
        DataError, match=r"1 of 1 rows have no value in any column that the fit can use \(rows 0, counted from 0\)"
    ):
        fitted.predict(alone)
    X[7] = np.nan
    with pytest.raises(
        DataError, match=r"1 of 40 rows have no value.*\(rows 7, counted from 0\).*leave those rows out"
    ):
        model(**options).fit(X)


def test_negative_eigenvalues_are_clipped_and_counted():
    X, _ = mixed(9, 0.4, seed=3)
    K = gower_kernel(X, X, 3.0, MASK)
    values = np.sort(algorithm_1(K, 2)[0])[::-1][1:]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fitted = model(9, gamma=3.0, order=2, gram="dense").fit(X)
    negative = int((values < -1e-9).sum())
    assert negative > 0
    assert any(f"{negative} of 8 eigenvalues of the cut are negative" in str(w.message) for w in found)
    np.testing.assert_allclose(fitted.eigenvalues_, np.maximum(values, 0), atol=1e-9)
    assert not fitted.embedding_[:, 9 - negative :].any()
    assert np.isfinite(fitted.transform(X)).all()


@pytest.mark.filterwarnings("ignore:[0-9]+ pairs of rows:biclique.exceptions.GapsWarning")
def test_negative_eigenvalues_of_landmarks_are_counted():
    X, _ = mixed(80, 0.15)
    with pytest.warns(GapsWarning, match=r"\d+ of 60 eigenvalues of κ of the landmarks are negative \(lowest -0"):
        model(gram="nystroem", rank=60).fit(X)
    with warnings.catch_warnings(action="error", category=GapsWarning):
        model(gram="nystroem", rank=60).fit(mixed(80)[0])


def test_gaps_are_equal_whatever_their_bits():
    X = np.array(mixed(40, 0.2)[0])
    other = X.copy()
    other[np.isnan(X)] = -np.nan
    other.view(np.int64)[np.isnan(X)] |= 5
    a, b = quiet(model(), np.concatenate([X, X])), quiet(model(), np.concatenate([X, other]))
    assert a._fitted.chosen.n_rows == b._fitted.chosen.n_rows == len(np.unique(X, axis=0))


# What is refused


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"device": "cpu", **NEIGHBORHOODS}, "the metric 'gower' works on the host"),
        ({"k": "select"}, "n_clusters='select' judges by Euclidean neighbours.*give a number"),
        ({"gamma": "scale"}, "gamma='scale' is the variance"),
        ({"device": "cpu"}, "gower"),
        ({"gram": "features"}, "gram='features' knows rbf.*not 'gower': use gram='nystroem'"),
        ({"categorical": "c"}, "categorical must be None, 'from_dtype', or columns"),
        ({"categorical": [1.5]}, "categorical must be None"),
        ({"categorical": 3}, "categorical must be None"),
        ({"categorical": [True, 2]}, "categorical must be None"),
        ({"categorical": [7]}, "has column 7, and X has 5: columns count from 0 to 4"),
        ({"categorical": [-1]}, "has column -1"),
        ({"categorical": [True, False]}, "a mask of 2 columns, and X has 5"),
        ({"categorical": ["c"]}, "names columns \\('c'\\), and X has no names"),
        ({"categorical": "from_dtype"}, "needs X to be a frame"),
    ],
)
def test_parameters_that_do_not_go_together(parameters, words):
    with pytest.raises(ParameterError, match=words):
        model(**parameters).fit(mixed(40)[0])


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.inf, "X contains infinity, the first in row 4, column 2"), (-1, "column 2 has -1 in row 4"), (0.5, "has 0.5")],
)
@pytest.mark.parametrize("options", [{}, NEIGHBORHOODS])
def test_values_that_are_refused(value, words, options):
    X = np.array(mixed(40, 0.1)[0])
    fitted = quiet(model(**options), X)
    X[4, 2] = value
    refuses(DataError, words, model(**options).fit, X)
    refuses(DataError, words, fitted.predict, X)


def test_gaps_for_other_affinities_sparse_rows_text_and_searches_are_refused():
    for affinity in ("neighborhoods", "rbf", "nearest_neighbors", "laplacian"):
        with pytest.raises(DataError, match="X contains NaN"):
            BicliqueSpectralClustering(3, affinity=affinity).fit(mixed(40, 0.1)[0])
    X, _ = mixed(40)
    for options, words in (
        ({}, "affinity 'rbf' or another, not with affinity="),
        (NEIGHBORHOODS, "the metrics.*not with"),
    ):
        refuses(DataError, f"sparse X works with {words}", model(**options).fit, sparse.csr_array(X))
    with pytest.raises(DataError, match=r"X holds text.*OrdinalEncoder"):
        model().fit(np.array([["a", "1"], ["b", "2"], ["a", "3"]], dtype=object))
    with pytest.raises(ParameterError, match="needs the ranges of the columns"):
        order_path(X, [2, 4], n_clusters=3, affinity="gower")


def test_a_kernel_with_columns_of_its_own():
    X, _ = mixed(60, 0.1)
    kernel = Gower(gamma=3.0, columns=Columns.of(X, MASK))
    own = quiet(BicliqueSpectralClustering(3, affinity=kernel, random_state=0), X)
    np.testing.assert_array_equal(own.embedding_, quiet(model(gamma=3.0), X).embedding_)
    refuses(ParameterError, "made for 5 columns", own.fit, X[:, :4])
