import numpy as np
import pytest
from scipy import sparse

from biclique.report.shown_columns import MISSING, Coded, Columns, Sums, association
from tests.optional import Optional
from tests.oracles import share_difference, standardised_difference

pd = Optional("pandas")


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4)) * [1, 5, 1e-3, 1] + [0, 3, 1e6, 0]
    X[:, 3] = 2.0
    X[::7, 1] = np.nan
    return X, random.integers(0, 3, 60)


def test_effects_and_means_are_those_of_a_profile(data):
    X, labels = data
    sums = Sums(3)
    sums.add(X[:20], labels[:20])
    sums.add(X[20:], labels[20:])
    for j in range(4):
        near = X[:, j] - X[1, j]  # the same effect, with all digits
        np.testing.assert_allclose(sums.effects[:, j], standardised_difference(near, labels, 3), rtol=1e-9)
        for cluster in range(3):
            own = X[labels == cluster, j]
            rest = X[labels != cluster, j]
            assert sums.means[cluster, j] == pytest.approx(np.nanmean(own), rel=1e-12)
            assert sums.other_means[cluster, j] == pytest.approx(np.nanmean(rest), rel=1e-12)


def test_effects_of_columns_without_spread_and_of_clusters_without_values():
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 4)) * [1, 1e-6, 1e3, 0] + [0, 1e3, -5e6, 7.0]
    labels = random.integers(0, 3, 60)
    X[:, 3] = labels == 1  # without any spread inside
    expected = np.column_stack([standardised_difference(column, labels, 4) for column in X.T])
    found = Sums.of(X, labels, 4).effects
    assert np.allclose(found, expected, rtol=1e-6, equal_nan=True)
    assert found[1, 3] == np.inf
    assert np.isnan(found[3]).all()
    sums = Sums.of(np.array([[1.0], [2.0], [np.nan]]), np.array([0, 1, 2]), 3)
    assert np.isnan([sums.means[2, 0], sums.effects[2, 0]]).all()
    unlabelled = np.where(np.arange(60) < 5, -1, labels)
    some, rest = Sums.of(X, unlabelled, 3), Sums.of(X[5:], labels[5:], 3)
    assert np.allclose(some.effects[:, :3], rest.effects[:, :3])


def test_separation_is_the_share_of_variance_between_clusters_of_sparse_rows_too(data):
    X, labels = data
    x = X[:, 0]
    between = sum((labels == j).sum() * (x[labels == j].mean() - x.mean()) ** 2 for j in range(3))
    sums = Sums.of(X, labels, 3)
    assert sums.separation[0] == pytest.approx(between / ((x - x.mean()) ** 2).sum())
    assert sums.separation[3] == 0  # a constant column
    known = np.where(np.isnan(X), 0.0, X)[:, :2]
    dense, csr = Sums.of(known, labels, 3), Sums.of(sparse.csr_array(known), labels, 3)
    np.testing.assert_allclose(csr.effects, dense.effects, rtol=1e-9)
    np.testing.assert_allclose(csr.separation, dense.separation, rtol=1e-9)


@pytest.mark.parametrize("large", [np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("row", [0, 30])
def test_infinite_values_count_as_missing(data, large, row):
    X, labels = data
    without = X.copy()
    X[row, 0], without[row, 0] = large, np.nan
    found, expected = Sums.of(X, labels, 3), Sums.of(without, labels, 3)
    for name in ("means", "other_means", "effects", "separation"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_levels_are_columns_of_zeros_and_ones():
    texts = np.array(["b", "a", None, "b", "a", "b"], dtype=object)
    labels = np.array([0, 0, 0, 1, 1, 1])
    one = Coded.of_texts("kind", texts)
    assert one.values == ["a", "b"]
    assert one.codes.tolist() == [1, 0, MISSING, 1, 0, 1]
    sums = Sums.of_levels(one, labels, 2)
    assert sums.means.tolist() == [[0.5, 0.5], [pytest.approx(1 / 3), pytest.approx(2 / 3)]]
    there = one.codes != MISSING
    gap = share_difference(one.codes[there] == 1, labels[there], 2)
    np.testing.assert_allclose((sums.means - sums.other_means)[:, 1], gap)


def test_cramers_v_is_one_if_levels_are_clusters_and_zero_if_they_say_nothing():
    assert association(4 * np.eye(3)) == pytest.approx(1)
    assert association(np.full((3, 2), 2.0)) == pytest.approx(0)
    assert association(np.full((3, 1), 4.0)) == 0  # a constant column


def test_many_levels_are_cut_to_one_byte():
    texts = np.array([f"level {j}" for j in range(400)] + ["often"] * 5, dtype=object)
    one = Coded.of_texts("many", texts)
    assert len(one.values) == MISSING
    assert one.values[-1] == f"one of {401 - MISSING + 1} others"
    assert "often" in one.values
    assert one.codes.max() == MISSING - 1
    assert one.codes.dtype == np.uint8


def test_few_values_are_kept_and_many_are_grouped():
    few = Coded.of_numbers("few", np.array([3.0, 1.0, np.nan, 3.0]))
    assert few.exact
    assert few.values == [1.0, 3.0]
    assert few.codes.tolist() == [1, 0, MISSING, 1]
    x = np.random.default_rng(0).lognormal(size=5000)
    many = Coded.of_numbers("many", x)
    assert not many.exact
    assert len(many.values) <= MISSING
    back = np.array(many.values)[many.codes]
    assert np.corrcoef(np.argsort(np.argsort(back)), np.argsort(np.argsort(x)))[0, 1] > 0.9999
    assert np.median(np.abs(back / x - 1)) < 0.01


def test_columns_of_frames_and_arrays():
    frame = pd.DataFrame({"n": [1, 2], "t": ["a", None], "b": [True, False], "d": pd.to_datetime(["2024-07-01", None])})
    found = Columns.of(frame)
    assert found.names == ["n", "b", "d (year)"]
    assert found.numbers[0].tolist() == [1, 1, pytest.approx(2024.4973, abs=1e-3)]
    assert np.isnan(found.numbers[1, 2])
    assert [one.name for one in found.categories] == ["t"]
    assert found.categories[0].codes.tolist() == [0, MISSING]
    assert Columns.of(np.eye(2)).names == ["x0", "x1"]
    assert Columns.of(np.array([["a", 1.0], ["b", 2.0]], dtype=object)).names == ["x1"]
