"""Numbers mean what the person who typed them meant, or are refused."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from missratio._files.cells import (
    canonical,
    decimal_marks,
    is_blank,
    parse_number,
    with_formula,
    without_formula,
)

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite)
def test_what_python_writes_is_read_back(number):
    assert parse_number(repr(number), frozenset(".")) == number
    assert parse_number(number) == number


@given(finite)
def test_a_decimal_comma_is_a_decimal_point(number):
    typed = repr(number).replace(".", ",")
    assert parse_number(typed, frozenset(",")) == number


@given(st.integers(-(10**12), 10**12), st.integers(0, 99))
def test_thousands_before_a_decimal_mark_leave_no_doubt(whole, cents):
    english = f"{whole:,}.{cents:02}"
    expected = float(f"{whole}.{cents:02}")
    assert parse_number(english) == expected
    assert parse_number(english.translate(str.maketrans(",.", ".,"))) == expected
    assert parse_number(english.replace(",", "\u202f")) == expected


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        (" 2.5 ", 2.5), ("\u22122.5", -2.5), ("+3", 3.0), ("0,125", 0.125),
        ("1234,567", 1234.567), ("1,2345", 1.2345), ("1,5e3", 1500.0),
        ("1.234", 1.234), ("1,234,567", 1234567.0), ("1 234", 1234.0),
        (np.float32(0.5), 0.5), (np.int64(4), 4.0),
    ],
)  # fmt: skip
def test_a_number_without_doubt(typed, number):
    assert parse_number(typed) == number


@pytest.mark.parametrize("typed", ["1,234", "-12,345", "999,999"])
def test_a_comma_that_may_group_thousands_is_settled_by_the_column_or_refused(typed):
    with pytest.raises(ValueError, match="could be"):
        parse_number(typed)
    with pytest.raises(ValueError, match="could be"):
        parse_number(typed, decimal_marks(["0.5", typed]))
    decimal = parse_number(typed, decimal_marks(["0,5", typed]))
    assert decimal == float(typed.replace(",", "."))


def test_a_point_may_group_thousands_where_commas_are_decimal():
    assert parse_number("1.234", decimal_marks(["2.5", "1.234"])) == 1.234
    with pytest.raises(ValueError, match=r"1\.234 or 1234\. Write 1\.2340 or 1234"):
        parse_number("1.234", decimal_marks(["2,5", "1.234"]))


NONSENSE = [
    "high", "5%", "3 5", "12,34,567", "1.2.3", "--1", "0x1f", "1_000", "<0.5", True,
    np.True_, datetime.date(2020, 5, 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        *((typed, "is not a number") for typed in NONSENSE),
        *((typed, "not finite") for typed in ("inf", "-Infinity", "1e999", "∞")),
        (float("inf"), "not finite"),
    ],
)
def test_what_is_not_a_number_is_refused(typed, message):
    with pytest.raises(ValueError, match=message):
        parse_number(typed)


@given(st.text("=+-@＝\t\n '\ufeff1a,%", max_size=6))
def test_what_a_spreadsheet_would_run_is_marked_and_read_back(text):
    marked = without_formula(text)
    assert with_formula(marked) == text
    begins = marked.strip("\ufeff \t\n")
    if len(begins) > 1 and begins[0] in "=+-@＝":
        assert parse_number(begins.removesuffix("%"), frozenset({","})) is not None


def test_no_answer():
    cells = ["", "  ", "NA", "n/a", "NaN", "null", None, np.nan]
    assert all(map(is_blank, cells))
    pd = pytest.importorskip("pandas")
    assert is_blank(pd.NA)
    assert is_blank(pd.NaT)


@given(st.integers(-(2**60), 2**60))
def test_integers_have_one_spelling_each(number):
    assert canonical(number) == canonical(str(number)) == str(number)
