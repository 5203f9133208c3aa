"""Answers go where they belong, and a contradiction is an error that names the row."""

import numpy as np
import pytest

import missratio as mr
from missratio._files.cells import Cells
from missratio.app.queries import answers


@pytest.fixture
def problem():
    """A table with named columns, its labels, and the values missing in it."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    full = rng.normal(size=(50, 3))
    X = full.copy()
    X[rng.random(X.shape) < 0.5] = np.nan
    return pd.DataFrame(X, columns=["pulse", "sugar", "salt"]), np.arange(50) % 2, full


@pytest.fixture
def asked(problem):
    X, y, _ = problem
    return mr.plan_queries(X, y, per_feature=5, random_state=0)


@pytest.fixture
def frame(problem, asked):
    """The plan with every value filled in, which may be text from then on."""
    frame = asked.to_frame()
    frame["value"] = problem[2][asked.rows, asked.columns]
    return frame.astype({"value": object, "row": object, "class": object})


def test_answers_of_a_class_are_aligned_with_its_rows(problem, asked, frame):
    X, y, full = problem
    revealed = mr.QueryPlan.read(frame, X, y)
    for label in (0, 1):
        of_class, observed = revealed[label], X[y == label].notna().to_numpy()
        assert of_class.shape == observed.shape
        found = ~np.isnan(of_class)
        assert not (found & observed).any()
        np.testing.assert_array_equal(of_class[found], full[y == label][found])
        np.testing.assert_array_equal(found.sum(axis=0), [5, 5, 5])
    assert (~np.isnan(revealed.table)).sum() == len(asked)
    with pytest.raises(KeyError, match="2 is not among the classes 0, 1"):
        revealed[2]


def test_a_table_without_labels_is_one_class():
    X = np.array([[1.0, np.nan], [np.nan, 2.0], [np.nan, np.nan]])
    plan = mr.plan_queries(X, per_feature=2, random_state=0)
    frame = plan.to_frame()
    frame["value"] = 9.0
    revealed = mr.QueryPlan.read(frame, X)
    np.testing.assert_array_equal(revealed.table, np.where(np.isnan(X), 9.0, np.nan))
    assert repr(revealed) == "<Revealed: 4 of 4 cells answered, 3 rows, 2 features>"


def refused(frame, problem, *words):
    """Reading fails, with a message that has all of these words."""
    X, y, _ = problem
    with pytest.raises(ValueError, match=r".") as caught:
        mr.QueryPlan.read(frame, X, y)
    for word in words:
        assert word in str(caught.value)


def with_cell(line, column, value):
    def change(frame):
        frame.loc[line, column] = value

    return change


NUMBER = "the value at row {row}, feature '{feature}' must be a number"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_cell(0, "value", "high"), [NUMBER, "'high' is not a number"]),
        (with_cell(0, "value", "1,234"), [NUMBER, "could be 1.234 or 1234"]),
        (with_cell(0, "value", np.inf), [NUMBER, "not finite"]),
        (with_cell(0, "value", True), [NUMBER, "True is not a number"]),
        (with_cell(0, "class", 7), ["class is 7 there, and {label} by its key"]),
        (with_cell(0, "feature", "suger"), ["feature is 'suger'", "'{feature}' by"]),
        (with_cell(0, "row", 50), ["row is 50 there, and {row} by its key"]),
        (with_cell(0, "draw", 7), ["draw is 7 there, and 1 by", "put it back"]),
        (with_cell(0, "key", None), ["isn't in the plan", "same random_state"]),
        (with_cell(0, "key", "bcd-fgh"), ["made for another table"]),
        (with_cell(slice(None), "value", "high"), ["line 4", "and 25 more"]),
    ],
)
def test_a_line_that_cannot_be_is_refused_with_its_place(
    problem, asked, frame, change, words
):
    X, y, _ = problem
    row, feature = asked.rows[0], X.columns[asked.columns[0]]
    change(frame)
    told = [word.format(row=row, feature=feature, label=y[row]) for word in words]
    refused(frame, problem, "line 0", *told)


def test_a_line_of_the_users_file_that_was_moved_is_refused(problem, frame):
    """Below a title or not, lines follow rows: else answers would change places."""
    X, y, _ = problem
    places = frame.pop("row").astype(float)
    by_row = places.sort_values().index
    frame["line"] = places + 4.0
    assert mr.QueryPlan.read(frame, X, y).answered.sum() == len(frame)
    frame.loc[by_row[[0, -1]], "line"] = frame.loc[by_row[[-1, 0]], "line"].to_numpy()
    refused(
        frame, problem, f"line {by_row[-1]} of", "order of their keys", "put it back"
    )
    frame["line"] = places
    frame.loc[by_row[0], "line"] = np.inf
    refused(frame, problem, f"line {by_row[0]} of", "not finite")


def test_a_key_with_a_slip_names_no_other_cell(problem, asked, frame):
    table, cell = frame["key"][0].split("-")
    for place in range(len(cell)):
        letter = "b" if cell[place] != "b" else "c"
        frame.loc[0, "key"] = f"{table}-{cell[:place]}{letter}{cell[place + 1 :]}"
        refused(frame, problem, "line 0", "isn't in the plan")


def test_a_forged_draw_and_an_endless_key_are_refused(problem, asked, frame):
    table = frame["key"][0].split("-")[0]
    for draw in (0, 51, 10**30):
        cell = int(asked.rows[0]), int(asked.columns[0]), draw
        word = answers.cell_word(asked.fingerprint, asked.shape, cell)
        frame.loc[0, "key"] = f"{table}-{word}"
        refused(frame.drop(columns="draw"), problem, "line 0", "isn't in the plan")
    frame.loc[0, "key"] = f"{table}-{'b' * 10**6}"
    refused(frame, problem, "line 0", "isn't in the plan")


def test_a_value_far_from_its_column_is_said_with_its_line(problem, asked, frame):
    X, y, _ = problem
    frame.loc[3, "value"] = 61.5
    name = X.columns[asked.columns[3]]
    said = rf"far from .* line 3 .* 61\.5 .*'{name}', beside"
    with pytest.warns(UserWarning, match=said):
        assert mr.QueryPlan.read(frame, X, y).answered.sum() == len(frame)


def test_answers_are_read_as_the_tables_own_cells():
    """Codes for missing values, texts that mean others, and the file's decimal mark."""
    X = np.array([[0.3, 1.0], [np.nan, 0.0], [np.nan, np.nan], [np.nan, np.nan]])
    levels = {"1": ("no", "yes")}
    frame = mr.plan_queries(X, per_feature=9, random_state=0).to_frame()
    given = {(1, "0"): "<0,5", (2, "0"): "1,234", (3, "0"): "12,5%",
             (2, "1"): "Yes", (3, "1"): 999}  # fmt: skip
    frame["value"] = [
        given[k] for k in zip(frame["row"], frame["feature"], strict=True)
    ]
    merged = ("<0,5", "0.25"), ("Yes", "yes")
    cells = Cells(missing_values=("999",), marks=(",",), merged=merged)
    revealed = mr.QueryPlan.read(frame, X, levels=levels, cells=cells)
    expected = [[np.nan] * 2, [0.25, np.nan], [1.234, 1.0], [0.125, np.nan]]
    np.testing.assert_allclose(revealed.table, expected)
    assert revealed.not_found.nonzero() == (3, 1)
    with pytest.raises(ValueError, match=r'what stands for it: --merge "<0,5=NUMBER"'):
        mr.QueryPlan.read(frame, X, levels=levels)


def test_key_and_value_are_enough_and_labels_are_needed(problem, frame):
    X, y, _ = problem
    whole = mr.QueryPlan.read(frame, X, y).table
    few = mr.QueryPlan.read(frame[["value", "key"]], X, y).table
    np.testing.assert_array_equal(few, whole)
    with pytest.raises(ValueError, match="give y"):
        mr.QueryPlan.read(frame, X)


def test_blank_lines_taken_out_and_draws_numbered_again_are_noticed():
    X = np.random.default_rng(0).normal(size=(60, 1))
    X[:40] = np.nan
    frame = mr.plan_queries(X, per_feature=20, random_state=0).to_frame()
    frame["value"] = frame["value"].astype(float)
    frame.loc[::2, "value"] = 1.0
    kept = frame.dropna(subset="value").copy()
    kept["draw"] = np.arange(1, len(kept) + 1)
    with pytest.raises(ValueError, match=r"draw is 2 there, and 3 by .* put it back"):
        mr.QueryPlan.read(kept, X)


def test_a_cell_answered_by_two_values(problem, asked, frame):
    pd = pytest.importorskip("pandas")
    again = frame.iloc[[1]].assign(value=7.5)
    both = pd.concat([frame, again], ignore_index=True)
    where = f"row {asked.rows[1]}, "
    refused(both, problem, "line 30", where, "line 1 ", "now by 7.5")


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.fillna({"pulse": 0.0}),
        lambda X: X.rename(columns={"salt": "sodium"}),
        lambda X: X[::-1].reset_index(drop=True),
    ],
)
def test_a_plan_for_another_table(problem, frame, change):
    X, y, full = problem
    refused(frame, (change(X), y, full), "line 0", "made for another table")


def test_names_and_labels_that_spreadsheets_change():
    X = np.array([[np.nan, 1.0], [1.0, np.nan], [np.nan, 2.0], [0.0, np.nan]])
    for y, labels in [
        (np.array([True, False] * 2), ["TRUE", "False"]),
        (np.array([1, 0] * 2), [1.0, "0.0"]),
        (np.array(["1", "0"] * 2), ["1", 0.0]),
    ]:
        frame = mr.plan_queries(X, y, per_feature=9, random_state=0).to_frame()
        spelt = dict(zip(y[:2].tolist(), labels, strict=True))
        frame["class"] = [spelt[label] for label in frame["class"]]
        frame["feature"] = frame["feature"].astype(float)
        frame["value"] = 1.0
        assert mr.QueryPlan.read(frame, X, y).answered.sum() == 4


@pytest.fixture
def rows():
    X = np.arange(60.0).reshape(20, 3)
    full = X.copy()
    X[::2] = np.nan
    plan = mr.plan_queries(X, per_feature=4, rowwise=True, random_state=0)
    frame = plan.to_frame()
    frame["value"] = full[plan.rows, plan.columns]
    return X, plan, frame


def test_whole_rows_are_revealed(rows):
    X, plan, frame = rows
    frame.loc[6:, "value"] = np.nan
    revealed = mr.QueryPlan.read(frame, X)
    assert revealed.rowwise.all()
    found = np.flatnonzero(~np.isnan(revealed.table).any(axis=1))
    assert set(found) == set(plan.rows[:6])
    np.testing.assert_array_equal(revealed.answered, [[2, 2, 2]])


def test_half_a_row_and_cells_among_rows_are_refused(rows):
    pd = pytest.importorskip("pandas")
    X, plan, frame = rows
    cells = mr.plan_queries(X, per_feature=2, random_state=0).to_frame()
    with pytest.raises(ValueError, match="lines are of a plan for whole rows"):
        mr.QueryPlan.read(pd.concat([frame, cells]), X)
    frame.loc[4, "value"] = np.nan
    with pytest.raises(ValueError, match=f"row {plan.rows[4]} is to be .*: '1' are"):
        mr.QueryPlan.read(frame, X)
