"""What columns look like, and the one error about them."""

import pickle

import numpy as np
import pytest

from biclique.tables.diagnosis import ColumnsError, advise, columns_of, describe
from biclique.tables.frames import normal
from tests.optional import Optional

pd = Optional("pandas")


def texts(name, values):
    return normal(pd.Series(list(values), name=name, dtype=object))


def look_at(column):
    return columns_of(pd.DataFrame({column.name: column}))[0]


def numbers(name, values):
    return pd.Series(values, name=name, dtype=float)


def dates(name, values):
    return pd.Series(np.array(values, dtype="datetime64[us]"), name=name)


DAYS = ["2024-02-29", "2021-01-01", "NaT"]
DAY_FIRST = "date written day/month/year, such as '31/12/2020': say so with date_order='day'"
MONTH_FIRST = "date written month/day/year, such as '12/31/2020 10:30': say so with date_order='month'"
EITHER_FIRST = "date with the day or the month first, such as"
GAPS = "numbers with commas, but for 2 of 6: 'unknown' in row 3; if '-' or 'unknown' stands for a gap, leave such"
THOUSANDS = "numbers with thousands separators, such as"


@pytest.mark.parametrize(
    ("look", "values", "words"),
    [
        ("category", "abab", "category: 2 levels ('a' 2, 'b' 2)"),
        ("category", "aaabcdebcde", "category: 5 levels ('a' 3, 'b' 2, 'c' 2, 'd' 2 and 1 more)"),
        ("category", ["a", "a", "", "b", "b"], "category: 2 levels ('a' 2, 'b' 2); 1 of 5 missing"),
        ("mostly missing", ["a", "NA", "?", ""], "mostly missing: 3 of 4; the others: category: 1 level ('a' 1)"),
        ("id", [f"k{i}" for i in range(9)], "id: 9 different, such as 'k0'"),
        ("text", [f"a note {i}" for i in range(9)], "text: 9 different, such as 'a note 0'"),
        ("text", [f"level {i // 2}" for i in range(202)], "text: 101 different, such as 'level 0'"),
        ("category", [f"level {i // 2}" for i in range(200)], "category: 100 levels"),
        ("date", ["31/12/2020", "", "1/2/2021"], f"{DAY_FIRST}; 1 of 3 missing"),
        ("date", ["12/31/2020 10:30", "01/02/2021"], MONTH_FIRST),
        ("date", ["1.2.2020", "3.4.2021"], f"{EITHER_FIRST} '1.2.2020': see whether date_order='day' or 'month'"),
        ("id", ["31/12/2020", "12/31/2020"], "id: 2 different"),
        ("text", ["1,000", "25"], f"{THOUSANDS} '1,000': write them without; if it is a decimal comma, say"),
        ("text", ["1,000.5", "25"], f"{THOUSANDS} '1,000.5': write them without"),
        ("decimal comma", ["1,5", "1,000"], "numbers with a decimal comma, such as '1,5': say so with decimal=','"),
        ("decimal comma", ["1.071,70", "5,3", "1.500"], "numbers with a decimal comma, such as '1.071,70': say so"),
        ("decimal comma", ["5,3%", "5%", "12,25 %"], "numbers with a decimal comma, such as '5,3%': say so"),
        ("text", ["1.071,70", "5.3"], "numbers written in several ways, such as '1.071,70' and '5.3'"),
        ("text", ["10,717", "3", "unknown", "5", "-", "7"], GAPS),
        ("text", ["1,5", "1.500", "3"], "numbers written in several ways, such as '1,5' and '1.500'"),
        ("text", ["1,5", "2,5", "1O"], "numbers with commas, but for 1 of 3: '1O' in row 3"),
        ("text", ["1.500", "3"], "numbers as texts (with a decimal comma a point is refused"),
        ("text", ["$1,000.50", "-$5", "7 €"], "amounts with several signs, such as '$1,000.50'"),
        ("text", ["$4.26", "5.1", "$7"], "amounts with a sign, such as '$4.26', and without, such as '5.1'"),
        ("text", ["0", "5.5%", "3 %"], "amounts with a sign, such as '5.5%', and without, such as '0'"),
        ("category", ["5%", "10%"] * 2, "category: 2 levels ('5%' 2, '10%' 2)"),
        ("text", ["1 2.5", "3  4"], "numbers between spaces, such as '1 2.5': put commas between them"),
        ("category", ["01", "02", "01", "02"], "category: 2 levels ('01' 2, '02' 2)"),
    ],
)
def test_looks_of_texts(look, values, words):
    found = look_at(texts("c", values)).looks
    assert found.look == look
    assert found.words.startswith(words)


@pytest.mark.parametrize(
    ("column", "look", "words"),
    [
        (dates("d", DAYS), "date", "date: 2021-01-01 to 2024-02-29; 1 of 3 missing"),
        (pd.Series([False, True, True], name="b"), "boolean", "boolean"),
        (numbers("x", [1.5, 2.5, 3.5]), "number", "number"),
        (numbers("x", [4, 5, 6]), "id", "id: counts the rows from 4"),
        (numbers("x", [4, 5, 7]), "number", "number"),
        (numbers("x", [np.nan] * 3), "mostly missing", "missing in every row (3)"),
        (numbers("customer_id", [903, 17, 5]), "id", "id: 3 different whole numbers, such as 903"),
        (numbers("customer_id", [17, 17, 5]), "number", "number"),
        (numbers("id", [2**60 + 1, 2**60 + 2, 2**61]), "id", f"id: whole numbers beyond 2**53, such as {2**60}"),
        (numbers("", [3, 1, 2]), "id", "no name: number"),
    ],
)
def test_looks_of_values(column, look, words):
    found = look_at(column).looks
    assert found.look == look
    assert found.words.startswith(words)


def test_advice_names_each_column_once():
    columns = [
        texts("key", [f"k{i}" for i in range(9)]),
        texts("note", [f"a note {i}" for i in range(9)]),
        texts("same", ["a"] * 9),
        texts("kind", ["a", "b", "c"] * 3),
        numbers("gaps", [np.nan] + [1.0] * 8),
        dates("day", ["2024-01-01"] * 9),
        numbers("empty", [np.nan] * 9),
    ]
    advice = advise([look_at(column) for column in columns])
    assert (advice.id, advice.drop, advice.categorical) == (["key"], ["note", "same", "empty"], ["kind"])
    assert (advice.dates, advice.missing) == ("ordinal", "mean")
    call = advice.python({"drop": ("x",), "scale": "none"})
    assert call == (
        "TablePreparer(drop=['x', 'key', 'note', 'same', 'empty'], scale='none', categorical=['kind'], "
        "dates='ordinal', missing='mean')"
    )
    assert advise([look_at(columns[3])], ["kind"]).categorical == []
    assert advise([look_at(column) for column in columns], fill=False).missing is None


def test_one_order_of_dates_is_advised():
    day, month, either = (texts(name, [name, "01/02/2020"]) for name in ("31/12/2020", "12/31/2020", "05/06/2020"))
    for columns, order, fitting in (
        ([either, day], "day", [either, day]),
        ([either, month], "month", [either, month]),
        ([either], "day", [either]),
        ([day, month], "day", [day]),
    ):
        advice = advise([look_at(column) for column in columns])
        assert advice.date_order == order
        assert advice.year_last == [column.name for column in fitting]
        assert advice.drop == [column.name for column in columns if column.name not in advice.year_last]


def test_names_and_values_of_columns_cannot_write_to_the_terminal():
    found = look_at(texts("a\n\x1b[31mb", [f"\x1b[2J{'x' * 40}{i}" for i in range(9)]))
    shown = describe("t\u202e.csv".encode("unicode_escape").decode(), [found])
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 2
    assert "…" in shown


def test_the_error_survives_pickle():
    advice = advise([look_at(texts("kind", "abab"))])
    error = pickle.loads(pickle.dumps(ColumnsError("columns", "", advice, "call")))
    assert (str(error), error.advice) == ("columns\nThis deals with all of them:\n  call", advice)
