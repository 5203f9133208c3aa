"""What a report says beyond the certificate: next steps, importance, lost rows."""

import numpy as np
import pytest
from optional_packages import optional
from sklearn.ensemble import HistGradientBoostingClassifier

import missratio as mr
from missratio.app.report._columns import Names
from missratio.app.report._importance import importance
from missratio.app.report._next import _power_at
from missratio.app.report._rows import LabelledRows
from missratio.app.report._summary import mixed_words, thousand_rows
from missratio.app.report._words import number

pd = optional("pandas")


def step(data, title):
    return next(s["text"] for s in data["next"] if s["title"] == title)


def powers(text):
    """The percentages of a sentence, the present one first."""
    return [float(word.rstrip("%,.")) for word in text.split() if "%" in word]


@pytest.fixture(scope="module")
def looked_up():
    """Rows of which incomplete ones were drawn, and how they were found."""
    rng = np.random.default_rng(0)
    Z = np.concatenate([rng.normal(0, 1, (1200, 2)), rng.normal(1.5, 1, (600, 2))])
    y = np.repeat(["well", "ill"], [1200, 600])
    lost = (y == "well") & (rng.uniform(size=1800) < 1 / (1 + np.exp(1 - Z[:, 0])))
    before = Z.copy()
    before[lost, 0] = np.nan
    drawn = rng.choice(np.flatnonzero(lost), 120, replace=False)
    X, inclusion = before.copy(), np.where(lost, 0.0, 1.0)
    X[drawn], inclusion[drawn] = Z[drawn], 120 / lost.sum()
    fitted = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.1, controlled_class="well", random_state=0
    ).fit(X, y, inclusion=inclusion)
    return LabelledRows.read(fitted, X, y, inclusion, before=before)


@pytest.fixture(scope="module")
def told(looked_up):
    names = Names.of(["dose", "age"])
    return mr.app.report.describe(looked_up, title=None, names=names).data


def test_more_look_ups_buy_power_and_never_cost_any(told):
    bought = powers(step(told, "More look-ups"))
    assert bought == sorted(bought)
    assert bought[0] == pytest.approx(
        100 * told["curve"]["power"][told["curve"]["own"]], abs=0.06
    )


def test_advice_on_look_ups_where_one_row_was_not_found_and_all_are_drawn():
    rng = np.random.default_rng(0)
    Z = np.concatenate([rng.normal(0, 1, (400, 2)), rng.normal(1.5, 1, (400, 2))])
    y = np.repeat(["well", "ill"], 400)
    lost = np.flatnonzero((y == "well") & (rng.uniform(size=800) < 0.2))
    before, inclusion = Z.copy(), np.ones(800)
    before[lost, 0] = np.nan
    X, drawn = before.copy(), lost[:-1]
    X[drawn], inclusion[lost] = Z[drawn], 0.0
    inclusion[drawn] = len(drawn) / len(lost)
    fitted = mr.NeymanPearsonClassifier(
        mr.KLIEP(), alpha=0.1, controlled_class="well", random_state=0
    )
    calibrates = fitted.fit(X, y, inclusion=inclusion).calibration_index_
    # Of rows that calibrate: its score is one that no threshold excludes.
    X[np.intersect1d(drawn, calibrates)[0], 0] = np.nan
    fitted.fit(X, y, inclusion=inclusion)
    assert fitted.calibration_.sample.lookups.not_found == 1
    rows = LabelledRows.read(fitted, X, y, inclusion, before=before)
    data = mr.app.report.describe(rows, title=None, names=Names.of(["a", "b"])).data
    bought = powers(step(data, "More look-ups"))
    assert bought == sorted(bought)


def test_looked_up_values_are_counted_and_marked(told, looked_up):
    (dose,) = (f for f in told["missingness"]["features"] if f["name"] == "dose")
    assert dose["looked_up"] == [120, 0]
    (profile,) = told["missingness"]["profiles"]
    found = looked_up.X[np.isnan(looked_up.before[:, 0]), 0]
    found = found[~np.isnan(found)]
    assert profile["marks"] == pytest.approx(np.sort(found), rel=1e-6)
    assert sum(profile["observed"]) <= 1.0 + 1e-9


def test_more_calibration_rows_bring_what_fresh_ones_bring():
    """The gain that is told is close to that of as many rows drawn anew."""
    rng = np.random.default_rng(1)

    def draw(n):
        X = np.concatenate([rng.normal(0, 1, (n, 1)), rng.normal(1.5, 1, (400, 1))])
        return X, np.repeat([0, 1], [n, 400])

    def fitted(n):
        X, y = draw(n)
        clf = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.1, random_state=0)
        return clf.fit(X, y), X, y

    few, many = [], []
    for _ in range(8):
        text = step(mr.build_report(*fitted(200)).data, "More calibration rows")
        few.append(powers(text)[-1])
        clf, *_ = fitted(800)
        many.append(100 * np.mean(clf.predict(rng.normal(1.5, 1, (20_000, 1)))))
    assert np.mean(few) == pytest.approx(np.mean(many), abs=6.0)


def test_power_along_the_curve_is_that_of_its_points(told):
    curve = told["curve"]
    own = curve["own"]
    assert _power_at(told, curve["estimated_error"][own]) == pytest.approx(
        curve["power"][own], abs=0.02
    )


def test_a_method_that_was_asked_for_could_be_compared(told):
    assert "not compared" in step(told, "Another method")


@pytest.mark.parametrize("frame", [False, True], ids=["array", "dataframe"])
def test_shuffling_costs_power_where_a_column_decides(frame):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 800)
    X = rng.normal(size=(1600, 3))
    X[:, 1] += 2.5 * y
    X = pd.DataFrame(X, columns=list("abc")) if frame else X
    clf = mr.NeymanPearsonClassifier(
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
        alpha=0.1, random_state=0,
    )  # fmt: skip
    found = mr.build_report(clf.fit(X, y), X, y, feature_names=list("abc"), folds=2)
    found = found.data["importance"]
    assert found["names"][0] == "b"
    assert found["values"][0] > 0.4
    assert np.abs(found["values"][1:]).max() < 0.1


def test_features_of_one_column_are_shuffled_together():
    """Each of two copies alone could be lost without harm; together they can't."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 800)
    one = rng.normal(2.5 * y)
    X = np.column_stack([one, one, rng.normal(size=1600)])
    clf = mr.NeymanPearsonClassifier(mr.KLIEP(l2=0.1), alpha=0.1, random_state=0)
    rows = LabelledRows.read(clf.fit(X, y), X, y)
    names = Names.of(["k=a", "k=b", "z"], ["k", "k", "z"])
    found = importance(rows, names, 0.1)
    assert found["names"] == ["k", "z"]
    assert found["values"][0] > 0.5


def test_without_fresh_rows_there_is_no_importance():
    assert importance(None, Names.of(["a"]), 0.1) is None


def test_blanks_of_categories_are_missing_values_of_their_column():
    X = np.array([[1.0, 0.0, 0.0], [np.nan, 1.0, 0.0], [2.0, 0.0, 1.0]])
    names = Names.of(
        ["t", "w=east", "w=(blank)"], ["t", "w", "w"], [False, False, True]
    )
    assert names.columns == ["t", "w"]
    assert names.missing(X).tolist() == [[False, False], [True, False], [False, True]]


def test_rows_without_a_score_are_a_caution():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (900, 2)), rng.normal(1.5, 1, (900, 2))])
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    y = np.repeat([0, 1], 900)
    clf = mr.NeymanPearsonClassifier(
        mr.KLIEP(missingness="ignore"),
        alpha=0.1,
        deployment="as-observed",
        random_state=0,
    )
    data = mr.build_report(clf.fit(X, y), X, y).data
    for entry in data["unscored"]:
        whole = ~np.isnan(X[y == int(entry["label"])]).any(axis=1)
        assert entry["share"] == pytest.approx(1.0 - whole.mean(), abs=1e-6)
    assert "Rows without a score" in [c["title"] for c in data["cautions"]]


def test_a_thousand_rows_are_a_thousand(told):
    for row in thousand_rows(told):
        assert sum(int(cell.replace(",", "")) for cell in row[1:]) in (999, 1000, 1001)
    assert "1,000" in mixed_words(told)


def test_a_column_without_data_has_no_coefficient():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (400, 2)), rng.normal(1, 1, (400, 2))])
    X = np.column_stack([X, np.ones(800)])
    y = np.repeat([0, 1], 400)
    clf = mr.NeymanPearsonClassifier(mr.KLIEP(l2=0.01), alpha=0.1, random_state=0)
    found = mr.build_report(clf.fit(X, y), X, y, folds=0).data["coefficients"]
    assert found["no_data"] == ["x2"]
    assert sorted(found["names"]) == ["x0", "x1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(142193, "142,193"), (15940.3, "15,940"), (0.00001234, "0.00001234"),
     (-3.25, "−3.25"), (7, "7"), (None, "–")],
)  # fmt: skip
def test_numbers_are_exact_and_have_no_powers_of_ten(value, text):
    assert number(value) == text


def test_a_report_says_where_it_comes_from(told):
    origin = told["origin"]
    assert origin["seed"] == 0
    assert origin["date"].endswith("UTC")
    assert origin["command"] is None
