"""TablePreparer: tables of any columns made into numbers."""

from contextlib import nullcontext as no_warning

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from biclique.exceptions import DataError, ParameterError, TableError, TableWarning
from biclique.tables.diagnosis import ColumnsError
from biclique.tables.preparer import TablePreparer
from biclique.tables.used_columns import warn_about_clusters
from tests import oracles
from tests.calls import refuses
from tests.optional import Optional, needs

pd, pl, pa = Optional("pandas"), Optional("polars"), Optional("pyarrow")


@parametrize_with_checks(
    [TablePreparer(), TablePreparer(missing="drop"), TablePreparer(missing="indicator")],
    # Of scikit-learn 1.6: it subtracts a mean from whole numbers, in place.
    expected_failed_checks=lambda _: {"check_positive_only_tag_during_fit": "fails before the estimator is called"},
)
def test_estimator_checks(estimator, check):
    check(estimator)


def mixed(n=12):
    """A table as people have it, by columns; None is missing."""
    return {
        "key": [f"k{i:02d}" for i in range(n)],
        "age": [None if i == 3 else 20.0 + i * i for i in range(n)],
        "color": [None if i == 5 else ("red", "green", "blue")[i % 3] for i in range(n)],
        "day": [f"2024-01-{1 + i:02d}" for i in range(n)],
        "member": [i % 4 == 0 for i in range(n)],
    }


def frames(columns):
    yield pd.DataFrame(columns)
    yield pd.DataFrame(columns).assign(day=pd.to_datetime(columns["day"]))
    yield pl.DataFrame(columns)
    yield pa.table(columns)


OPTIONS = {"drop": ["key"], "categorical": ["color"], "dates": "ordinal"}


@pytest.mark.parametrize("missing", ["drop", "mean", "median", "indicator"])
@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
def test_every_frame_gives_what_the_naive_loop_gives(missing, scale):
    expected, names, kept = oracles.prepared_table(mixed(), missing, scale)
    for frame in frames(mixed()):
        preparer = TablePreparer(**OPTIONS, missing=missing, scale=scale)
        if missing == "drop":
            with pytest.warns(TableWarning, match=r"left out 2 of 12 rows \(counting from 0: 3, 5\)"):
                X = preparer.fit_transform(frame)
        else:
            X = preparer.fit_transform(frame)
        np.testing.assert_allclose(X, expected, atol=1e-12)
        assert preparer.get_feature_names_out().tolist() == names
        assert preparer.kept_.tolist() == preparer.kept(frame).tolist() == kept


def test_one_mismatch_counts_one():
    table = [["a", "x"], ["b", "x"], ["c", "y"], ["a", "y"]]
    X = TablePreparer(categorical=[0, 1]).fit_transform(table)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    mismatches = [[sum(a != b for a, b in zip(r, s, strict=True)) for s in table] for r in table]
    np.testing.assert_allclose(squared, mismatches, atol=1e-15)


def test_one_error_lists_every_column_and_its_call_works():
    pytest.importorskip("pandas")
    frame = pd.DataFrame(mixed()).assign(fax=[None] * 11 + ["x"], note=[f"a note {i}" for i in range(12)], n=range(12))
    with pytest.raises(ColumnsError) as caught:
        TablePreparer(scale="robust").fit(frame)
    message = str(caught.value)
    for words in (
        "X: of 8 columns, 5 are not numbers and 3 have missing values (NaN), the first missing value in row 1, column",
        "\n  key    id: 12 different, such as 'k00'",
        "\n  age    number; 1 of 12 missing",
        "\n  color  category: 3 levels ('red' 4, 'green' 4, 'blue' 3); 1 of 12 missing",
        "\n  day    date: 2024-01-01 to 2024-01-12",
        "\n  fax    mostly missing: 11 of 12",
        "\n  note   text: 12 different",
        "\n  n      id: counts the rows from 0",
    ):
        assert words in message
    assert "member" not in message
    call = message.splitlines()[-1].strip()
    X = eval(call, {"TablePreparer": TablePreparer}).fit_transform(frame)
    assert X.shape == (12, 3 + 3)


def table(**columns):
    """Objects of Python as a frame with these names."""
    frame = pd.DataFrame({name: pd.Series(list(values), dtype=object) for name, values in columns.items()})
    frame.attrs["name"] = "t"
    return frame


def test_unseen_levels_are_named_and_as_far_from_all():
    preparer = TablePreparer(categorical=["c"]).fit(table(c=["a", "b", "a"]))
    with pytest.warns(TableWarning, match="column 'c' has 1 level that fit did not see, in 2 of 3 rows: 'z'"):
        X = preparer.transform(table(c=["z", "a", "z"]))
    assert X.tolist() == [[0, 0], [np.sqrt(0.5), 0], [0, 0]]


def test_auto_takes_categories_and_nothing_else():
    some = table(c=["a", "b"] * 6, a=np.arange(12.0) ** 2, flag=[True, False, False] * 4)
    assert TablePreparer(categorical="auto").fit(some).category_columns_ == ["c"]
    with pytest.raises(ColumnsError, match="1 is not numbers") as caught:
        TablePreparer(categorical="auto").fit(table(c=["a", "b"] * 6, key=[f"k{i}" for i in range(12)]))
    assert caught.value.advice.id == ["key"]
    assert "categorical='auto'" in str(caught.value)


def test_numbers_as_categories_are_the_same_levels_however_they_are_written():
    preparer = TablePreparer(categorical=["c"]).fit(table(c=[1, 2, 10]))
    assert preparer.levels_ == {"c": ["1", "10", "2"]}
    expected = preparer.transform(table(c=[1, 10]))
    for again in ([1.0, 10.0], ["1.0", "10"], np.array(["1", "10"])):
        assert np.array_equal(preparer.transform(table(c=again)), expected)
    flags = TablePreparer(categorical=["c"]).fit(table(c=[True, False]))
    for again in ([True, False], [1, 0], ["True", "FALSE"]):
        assert np.array_equal(flags.transform(table(c=again)), flags.transform(table(c=[True, False])))


def test_labels_are_put_back_in_place():
    some = table(x=[1.0, None, 3.0, 5.0], y=[1.0, 2.0, 4.0, np.inf])
    preparer = TablePreparer(missing="drop").fit(some)
    assert preparer.kept_.tolist() == [True, False, True, False]
    assert preparer.in_place([7, 8]).tolist() == [7, -1, 8, -1]
    assert preparer.in_place(np.array([0.5]), np.array([False, True]), fill=0).tolist() == [0, 0.5]
    refuses(DataError, "3 labels came for 2 rows", preparer.in_place, [1, 2, 3])


def test_another_order_is_refused_by_its_name_also_if_a_column_that_is_not_used_is_absent():
    preparer = TablePreparer(drop=["c"]).fit(table(a=[1.0, 5.0], b=[2.0, 3.0], c=["x", "y"]))
    preparer.transform(table(more=[0.0], a=[1.0], b=[2.0]))
    refuses(ValueError, "must be in the same order as they were in fit", preparer.transform, table(b=[2.0], a=[1.0]))


def test_dates_as_texts_say_how_pandas_makes_dates_of_them():
    some = pd.DataFrame({"a": [1.0, 5.0], "d": ["31/12/2020", "30/11/2021"]})
    call = "X['d'] = pandas.to_datetime(X['d'], dayfirst=True)"
    with pytest.raises(ColumnsError) as caught:
        TablePreparer().fit(some)
    assert str(caught.value).splitlines()[-1] == f"To keep dates, make them first: {call}"
    some["d"] = pd.to_datetime(some["d"], dayfirst=True)
    assert TablePreparer(dates="ordinal").fit(some).transform(some).shape == (2, 2)


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_columns_without_any_value_are_named(missing):
    preparer = TablePreparer(missing=missing, categorical=["c"])
    preparer.fit(table(x=[1.0, None, 3.0], y=[1.0, 2.0, 4.0], c=["a", "b", None]))
    empty = table(x=[np.nan, np.nan], y=[1.0, 2.0], c=[None, None])
    with pytest.warns(TableWarning, match=r"columns 'x', 'c' have no value in any of 2 rows: all are filled in"):
        preparer.transform(empty)
    preparer.transform(empty[:1])  # one row may lack values: no warning, which would be an error


def test_a_gap_that_fit_had_not_is_named():
    preparer = TablePreparer(missing="indicator", categorical=["c"]).fit(table(x=[1.0, 3.0], c=["a", "b"]))
    with pytest.warns(TableWarning) as caught:
        X = preparer.transform(table(x=[None, 3.0], c=["a", None]))
    assert X[:, 0].tolist() == [0, 1]
    assert "'x' had no gaps in fit" in str(caught[0].message)
    assert "1 level that fit did not see" in str(caught[1].message)


def test_columns_by_name_and_by_number():
    some = table(a=[1.0, 5.0], b=[2.0, 3.0], c=["x", "y"])
    assert TablePreparer(columns=["b"], scale="none").fit_transform(some).tolist() == [[2], [3]]
    assert TablePreparer(drop=["a", "c"], scale="none").fit_transform(some).tolist() == [[2], [3]]
    X = np.array([[1.0, 2.0], [5.0, 3.0]])
    assert TablePreparer(columns=[1], scale="none").fit_transform(X).tolist() == [[2], [3]]
    assert TablePreparer(drop=["0"]).fit(X).get_feature_names_out(["p", "q"]).tolist() == ["q"]


def test_new_tables_may_have_more_columns_and_another_order():
    preparer = TablePreparer(drop=["c"], scale="none").fit(table(a=[1.0, 5.0], b=[2.0, 3.0], c=["x", "y"]))
    assert preparer.transform(table(d=["?", "x"], a=[1.0, 5.0], b=[2.0, 3.0])).tolist() == [[1, 2], [5, 3]]
    other = table(d=["?", "x"], b=[2.0, 3.0], a=[1.0, 5.0])
    assert preparer.transform_rows(other)[0].tolist() == [[1, 2], [5, 3]]
    refuses(ValueError, "feature names should match", preparer.transform, other)
    refuses(DataError, "column 'b' was used in fit and is not there", preparer.transform_rows, table(a=[1.0]))
    with pytest.raises(DataError, match="column 'b' held numbers in fit and holds texts now, such as 'much'"):
        preparer.transform(table(a=[1.0, 2.0], b=[1.0, "much"]))
    flags = TablePreparer().fit(table(f=[True, False], x=[1.0, 2.0]))
    assert flags.transform(table(f=[0, 1], x=[1.0, 2.0]))[:, 0].tolist() == [0, 1]
    with pytest.raises(DataError, match="column 'f' held booleans in fit and holds numbers now, such as '5'"):
        flags.transform(table(f=[0, 5], x=[1.0, 2.0]))


@pytest.mark.parametrize(
    ("fitted", "now", "message"),
    [
        (["2020-01-31", "2020-02-01"], ["31/01/2020", "1/2/2020"], "such as '31/01/2020': .*date_order=…"),
        ([1.0, 2.0], ["1,5", "2,5"], "such as '1,5': .*decimal=','"),
        ([1.0, 2.0], ["1,5", "much"], "such as 'much': mend the values"),
    ],
)
def test_values_that_are_written_otherwise_than_in_fit(fitted, now, message):
    preparer = TablePreparer(dates="ordinal").fit(table(x=fitted))
    refuses(DataError, message, preparer.transform, table(x=now))


TWO = {"a": [1.0, 2.0], "b": [1.0, 4.0]}
MISSING = "missing must be one of 'refuse', 'drop', 'mean', 'median', 'indicator', 'keep', got 'zero'"
ROBUST = {"missing": "median", "scale": "robust"}
UNNAMED = {"": range(1, 13), "a": np.arange(12.0) ** 2}


@pytest.mark.parametrize(
    ("columns", "options", "error", "message"),
    [
        (TWO, {"missing": "zero"}, ParameterError, MISSING),
        (TWO, {"dates": "year"}, ParameterError, "dates must be one of"),
        (TWO, {"scale": None}, ParameterError, "scale must be one of 'standard', 'robust', 'none', got None"),
        (TWO, {"drop": "a"}, ParameterError, r"drop must be a list of names of columns, got 'a': write \['a'\]"),
        (TWO, {"drop": ["zz"]}, TableError, "drop names column 'zz', which does not exist; columns: 'a', 'b'"),
        (TWO, {"columns": ["zz"]}, TableError, "columns names column 'zz'"),
        (TWO, {"categorical": ["zz"]}, TableError, "categorical names column 'zz'"),
        (TWO, {"columns": []}, TableError, "no feature columns are left"),
        (TWO, {"drop": ["a", "b"]}, TableError, "no feature columns are left"),
        ({"x": [1.0, np.inf]}, {"missing": "mean"}, DataError, r"infinite value \(inf\) in row 2, column 'x'"),
        ({"x": [1.0, None], "y": [None, 1.0]}, {"missing": "drop"}, DataError, "every row has a missing value"),
        ({"x": [None, None], "y": [1.0, 2.0]}, {"missing": "mean"}, DataError, r"missing in every row \(2\)"),
        ({"y": [1.0, 2.0], "x": [1e308, -1e308]}, {}, DataError, "column 'x' has values too large to scale: divide it"),
        ({"x": [1e308, 1e308, None]}, {"missing": "mean"}, DataError, "too large to scale"),
        ({"x": [1e308, 1e308, None]}, {"missing": "mean", "scale": "none"}, DataError, "too large to scale"),
        ({"x": [1e308, 1.7e308, None]}, ROBUST, DataError, "too large to scale"),
        (UNNAMED, {}, ColumnsError, "1 should not be used as it is:"),
        ({**UNNAMED, "row_id": range(12, 0, -1)}, {}, ColumnsError, "2 should not be used as they are:"),
    ],
)
def test_wrong_parameters_and_tables_that_cannot_be_used(columns, options, error, message):
    refuses(error, message, TablePreparer(**options).fit, table(**columns))


@needs("pandas")
def test_output_as_frames_keeps_the_index_of_the_rows_that_stay():
    frame = pd.DataFrame(mixed(), index=range(100, 112))
    for missing, index in (("mean", list(range(100, 112))), ("drop", [100, 101, 102, 104, *range(106, 112)])):
        preparer = TablePreparer(**OPTIONS, missing=missing).set_output(transform="pandas")
        with pytest.warns(TableWarning) if missing == "drop" else no_warning():
            made = preparer.fit_transform(frame)
        assert made.index.tolist() == index
        assert made.columns.tolist() == preparer.get_feature_names_out().tolist()


def test_codes_and_gaps_are_what_gower_takes():
    table = mixed()
    preparer = TablePreparer(**OPTIONS, missing="keep", encode="codes", scale="none").fit(pd.DataFrame(table))
    X = preparer.transform(pd.DataFrame(table))
    assert preparer.get_feature_names_out().tolist() == ["age", "day", "member", "color"]
    assert preparer.categorical_places_ == [3]
    levels = ["blue", "green", "red"]
    expected = [np.nan if color is None else float(levels.index(color)) for color in table["color"]]
    np.testing.assert_array_equal(X[:, 3], expected)
    np.testing.assert_array_equal(np.isnan(X[:, 0]), [age is None for age in table["age"]])
    table["color"][0] = "mauve"
    with pytest.warns(TableWarning, match="1 level that fit did not see, in 1 of 12 rows: 'mauve'"):
        assert preparer.transform(pd.DataFrame(table))[0, 3] == 3  # a code of its own


def test_amounts_are_numbers():
    amounts = table(p=["$1,200", "-$5.50", None], share=["56%", "7 %", "?"])
    made = TablePreparer(missing="keep", scale="none").fit_transform(amounts)
    np.testing.assert_array_equal(made, [[1200, 56], [-5.5, 7], [np.nan, np.nan]])
    refuses(ColumnsError, "amounts with several signs", TablePreparer().fit, table(p=["$1", "7 €", "3 $"]))


# Dask frames


def partitions(frame, n=3):
    return Optional("dask.dataframe").from_pandas(frame, npartitions=n, sort=False)


@pytest.mark.parametrize("missing", ["drop", "mean", "indicator"])
@pytest.mark.parametrize("scale", ["standard", "none"])
def test_partitions_give_what_the_whole_table_gives(missing, scale):
    some = pd.DataFrame(mixed()).assign(same=3.0)
    whole = TablePreparer(**OPTIONS, missing=missing, scale=scale).fit(some)
    parts = TablePreparer(**OPTIONS, missing=missing, scale=scale).fit(partitions(some))
    expected, kept = whole.transform_rows(some)
    made = parts.transform(partitions(some)).compute()
    np.testing.assert_allclose(made.to_numpy(), expected, atol=1e-12)
    assert made.columns.tolist() == whole.get_feature_names_out().tolist()
    assert parts.kept(partitions(some)).tolist() == kept.tolist()
    assert np.array_equal(made.to_numpy(), parts.transform_rows(some)[0])
    refuses(DataError, "does not know the rows of fit", parts.in_place, [1])


def test_arrays_of_dask():
    X = np.random.default_rng(0).normal(size=(40, 3)) + [0, 1e6, -3]
    rows = Optional("dask.array").from_array(X, chunks=(7, 2))
    made = TablePreparer().fit_transform(rows).compute().to_numpy()
    np.testing.assert_allclose(made, TablePreparer().fit_transform(X), atol=1e-9)


def test_columns_far_from_0_are_scaled_and_rounding_errors_are_not():
    draw = np.random.default_rng(0)
    far = [1e15 + draw.integers(0, 60, 300), 1.7e18 + 1000.0 * draw.integers(0, 100, 300), draw.normal(size=300) - 1e9]
    rounded = [1 + 2**-52 * draw.integers(0, 2, 300), np.full(300, 0.1), 1.2e18 + 100.0 * draw.integers(0, 2, 300)]
    some = pd.DataFrame(dict(zip("abcdef", [*far, *rounded], strict=True)))
    for scale, frame in (("standard", some), ("robust", some), ("standard", partitions(some))):
        preparer = TablePreparer(scale=scale).fit(frame)
        deviations = preparer.transform_rows(some)[0].std(axis=0)
        np.testing.assert_allclose(deviations[:3], 1, rtol=0.01 if scale == "standard" else 0.5)
        assert (deviations[3:] < 0.1).all()


@pytest.mark.parametrize("missing", ["mean", "indicator"])
@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
def test_gaps_of_a_constant_column_get_its_value(scale, missing):
    value = 99.9
    X = np.full((5, 1), value)
    X[3:] = np.nan
    assert np.nanmean(X) != value  # it is rounded
    preparer = TablePreparer(scale=scale, missing=missing).fit(X)
    assert preparer.fill_ == value
    assert np.ptp(preparer.transform(X)[:, 0]) == 0


@pytest.mark.parametrize("scale", ["standard", "robust"])
@pytest.mark.parametrize("unit", [1e-100, 1e-20, 1e-15, 1e20])
def test_units_do_not_matter(scale, unit):
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1, 1e6]
    X = np.column_stack([X, np.full(50, 0.1), X[:, 0] > 1])  # of the last, the quartiles are equal
    made = TablePreparer(scale=scale).fit_transform(X * [unit, 1, unit, unit])
    expected = TablePreparer(scale=scale).fit_transform(X * [1, 1, unit, 1 if scale == "standard" else unit])
    np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("columns", "options", "error", "message"),
    [
        ({"x": [1.0, 2.0]}, {"missing": "median"}, ParameterError, "use missing='mean', or read the table whole"),
        ({"x": [1.0, 2.0]}, {"scale": "robust"}, ParameterError, "scale='robust' needs every value"),
        ({"x": [1.0, 2.0]}, {"categorical": "auto"}, ParameterError, "categorical='auto' .*: name the columns"),
        ({"x": [1.0] * 8 + [None]}, {}, DataError, "missing value in row 3, column 'x'"),
        ({"x": [1.0] * 8, "c": ["a", "b"] * 4}, {}, ColumnsError, r"its first 3 rows.*\n  c  "),
        ({"x": [1.0, None], "y": [None, 1.0]}, {"missing": "drop"}, TableError, "every row has a missing value"),
        ({"x": [1.0] * 5 + [np.inf]}, {"missing": "mean"}, TableError, "infinite value"),
    ],
)
def test_partitions_that_cannot_be_used(columns, options, error, message):
    refuses(error, message, TablePreparer(**options).fit, partitions(pd.DataFrame(columns)))


def test_clusters_that_are_one_level_are_named():
    some = table(state=["TX", "NY", "LA", "TX", "NY"], other=["a", "a", "b", "a", None])
    with pytest.warns(TableWarning, match=r"^cluster 1 is state = 'TX', all such rows and no others: leave"):
        warn_about_clusters(some, ["state", "other"], np.array([1, 0, 0, 1, 0]))
