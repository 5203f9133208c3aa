"""Rows as they are read: repeats are named, units kept whole, files read in blocks."""

import numpy as np
import pytest
from classifiers import certified
from data import corrupted, write_table
from optional_packages import optional
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.validation import check_is_fitted

import missratio as mr
from missratio.classifier import NoPowerWarning, PowerSearch, RepeatedRowsWarning
from missratio.classifier import reading as split
from missratio.classifier.reading import warn_of_repeated_rows
from missratio.exceptions import UnexplainedMissingError


class Backwards(LogisticRegression):
    """Ranks rows the wrong way round."""

    def decision_function(self, X):
        return -super().decision_function(X)


def test_a_certificate_without_power_is_named(two_normals):
    X, y = two_normals(300, 2)
    with pytest.warns(NoPowerWarning, match="150 calibration rows have the same score"):
        certified(DummyClassifier()).fit(X, y)
    with pytest.warns(NoPowerWarning, match="same score"):
        certified(DummyClassifier().fit(X, y)).calibrate(X[y == 0])
    with pytest.warns(NoPowerWarning, match="none of 300 rows of the other class"):
        certified(Backwards()).fit(X + 9 * y[:, None], y)


BLANKS = {
    "None": lambda X: np.where(np.isnan(X), None, X.astype(object)),
    "lists": lambda X: np.where(np.isnan(X), None, X.astype(object)).tolist(),
    "masked": lambda X: np.ma.masked_array(np.nan_to_num(X), np.isnan(X)),
}
KINDS = [mr.NeymanPearsonClassifier, mr.GroupedNeymanPearsonClassifier,
         mr.MulticlassNeymanPearsonClassifier]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("written", BLANKS.values(), ids=BLANKS)
def test_a_blank_is_missing_however_it_is_written(two_normals, written, kind):
    phi = {0: mr.LogisticMissingness(-1.0, [1.0, -1.0])}
    X, y = two_normals(300, 2, shift=1.0)
    X = corrupted(X, y, phi)
    alpha = {0: 0.3} if kind is KINDS[2] else 0.3
    more = {"groups": ("a",) * len(y) if kind is KINDS[1] else None}
    options = {"alpha": alpha, "delta": 0.2, "random_state": 0}
    said = []
    for table in (X, written(X)):
        model = kind(mr.KLIEP(), missingness=phi, **options).fit(table, y, **more)
        search = PowerSearch({"": mr.KLIEP()}, missingness=phi, random_state=0)
        power = search.fit(table, y.astype(bool)).comparison_.candidates[0].power
        page = mr.build_report(model, table, y, folds=0, **more).data["errors"]
        weights = model.row_weights(table, y).tolist()
        said.append((str(model.certificate_), weights, page, power))
    assert said[0] == said[1]
    # Trees take blanks, but nothing says why these are there.
    trees = HistGradientBoostingClassifier(max_iter=5)
    with pytest.raises(UnexplainedMissingError, match="missing values"):
        kind(trees, **options).fit(table, y, **more)


COPIES = np.random.default_rng(0)


@pytest.mark.parametrize(
    "copies",
    [2, 3, 5, 8, 12, COPIES.integers(5, 9, 200), 1 + COPIES.poisson(1, 200)],
    ids=[2, 3, 5, 8, 12, "five to nine", "one and more"],
)
def test_rows_are_known_again_however_often_they_are_repeated(two_normals, copies):
    X, y = two_normals(100, 2, shift=1.5)
    many = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    # Of a patient's rows some are split off.
    with pytest.warns(RepeatedRowsWarning, match="are training rows as well"):
        certified(mr.KLIEP()).fit(*many)
    model = LogisticRegression().fit(X, y)
    with pytest.warns(RepeatedRowsWarning, match="% .* more than once"):
        certified(model).calibrate(many[0][many[1] == 0])
    with pytest.warns(RepeatedRowsWarning, match="100% of the calibration rows"):
        certified(model).calibrate(X[y == 0], X0_training=X[y == 0])


def determined(x):
    return np.column_stack([x, 2 * x, x**2])


def kinds(rng, n, kinds):
    return kinds[rng.integers(0, len(kinds), n)]


COINCIDING = {
    "rounded": lambda rng, n: np.round(rng.normal(size=(n, 1)), 3),
    "correlated": lambda rng, n: np.round(
        rng.normal(size=(n, 1)) + 0.2 * rng.normal(size=(n, 2)), 1
    ),
    "determined": lambda rng, n: np.round(determined(rng.normal(size=n)), 3),
    "categories": lambda rng, n: kinds(
        rng, n, rng.integers(0, 12, (n // 2, 5)).astype(float)
    ),
    "few kinds": lambda rng, n: kinds(rng, n, rng.normal(size=(4, 3))),
    "zeros": lambda rng, n: np.where(
        rng.random((n, 3)) < 0.7, 0.0, rng.normal(size=(n, 3))
    ),
    "mixed": lambda rng, n: np.column_stack(
        [np.rint(rng.gamma(4, 10, n)), rng.integers(0, 2, n)]
    ),
}


@pytest.mark.parametrize("draw", COINCIDING.values(), ids=list(COINCIDING))
@pytest.mark.parametrize("n_rows", [60, 1000, 4000])
def test_independent_rows_that_coincide_are_not_accused(draw, n_rows):
    # Warnings are errors.
    for seed in range(10):
        rows = draw(np.random.default_rng(seed), n_rows)
        warn_of_repeated_rows(rows[::2], rows[1::2])
        warn_of_repeated_rows(rows)


@pytest.mark.parametrize("steps", [5, 20, 60])
def test_training_rows_are_known_again_where_columns_are_rounded(steps):
    rng = np.random.default_rng(steps)
    rows = np.c_[rng.integers(0, steps, (1200, 2)), rng.normal(size=(1200, 2)).round(1)]
    warn_of_repeated_rows(rows[:400], rows[400:])
    with pytest.warns(RepeatedRowsWarning, match="are training rows as well"):
        warn_of_repeated_rows(rows[:400], rows[200:])


def test_rows_that_repeat_by_chance_are_no_cause_for_alarm(two_normals):
    X, y = two_normals(300, 2, shift=1.5)
    certified(mr.FDivergenceRatio("js")).fit(X, y)
    certified(mr.FDivergenceRatio("js")).fit(np.rint(X), y)
    # Copies among training rows alone are no matter.
    warn_of_repeated_rows(X[:100], np.repeat(X[100:200], 3, axis=0))


# Units of several rows: split as a whole, and calibrated by one row of each.


class Recorder(LogisticRegression):
    """Keeps what it was told about units."""

    def fit(self, X, y, groups=None):
        self.groups_ = groups
        return super().fit(X, y)


@pytest.fixture
def patients():
    """Three rows of each patient, with patients of both classes among them."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    units = np.array([f"p{k}" for k in rng.permutation(np.repeat(np.arange(200), 3))])
    return rng.normal(size=(600, 2)) + 1.5 * y[:, None], y, units


def test_units_are_split_as_a_whole(patients):
    X, y, units = patients
    model = certified().fit(X, y, groups=units)
    held, fitted = units[model.calibration_index_], units[model.training_index_]
    assert len(set(held)) == len(held)
    assert not set(held) & set(fitted)
    assert set(y[model.calibration_index_]) == {0}
    assert len(held) == round(len(set(units[y == 0])) / 2)
    assert model.certificate_.rows == len(held)
    # Nothing but the other rows of the units held out is left out.
    assert set(fitted) == set(units) - set(held)
    again = certified(calibration_size=40).fit(X, y, groups=units)
    assert len(again.calibration_index_) == 40
    alone = certified().fit(X, y, groups=np.arange(len(y)))
    assert len(alone.calibration_index_) == 150
    assert len(alone.training_index_) == 450
    with pytest.raises(ValueError, match=r"units of class 0 and leaves"):
        certified(calibration_size=300).fit(X, y, groups=units)


def test_the_certificate_says_whose_error_it_bounds(patients):
    X, y, units = patients
    model = certified().fit(X, y, groups=units)
    assert "random row of a random unit" in model.certificate_.assumptions[-1]
    assert "random row of a random unit" in str(model.certificate_)
    fitted = LogisticRegression().fit(X, y)
    again = certified(fitted).calibrate(X[y == 0], groups=units[y == 0])
    assert again.certificate_.assumptions == model.certificate_.assumptions
    assert "unit" not in str(certified().fit(X, y).certificate_)


def test_one_row_of_each_unit_calibrates(patients):
    X, y, _ = patients
    fitted = LogisticRegression().fit(X, y)
    X0, units = np.repeat(X[y == 0], 3, axis=0), np.repeat(np.arange(300), 3)
    model = certified(fitted).calibrate(X0, groups=units)
    alone = certified(fitted).calibrate(X[y == 0])
    assert model.certificate_.rows == 300
    assert model.threshold_ == alone.threshold_
    many = np.repeat(X, 6, axis=0), np.repeat(y, 6)
    certified().fit(*many, groups=np.repeat(np.arange(len(y)), 6))


def test_an_estimator_is_told_of_units_if_it_asks(patients):
    X, y, units = patients
    model = certified(Recorder()).fit(X, y, groups=units)
    np.testing.assert_array_equal(
        model.estimator_.groups_, units[model.training_index_]
    )
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(3))
    check_is_fitted(certified(search).fit(X, y, groups=units).estimator_)


def test_every_row_has_a_unit(patients):
    X, y, units = patients
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        certified().fit(X, y, groups=units[:5])
    with pytest.raises(ValueError, match=r"1 row.s. have no group.* one of its own"):
        certified().fit(X, y, groups=[None, *units[1:]])


# A classifier keeps its promise on rows that are read block by block.


pd = optional("pandas")


NAMES = ["a", "b"]


def labelled(rng, n_rows):
    y = rng.integers(0, 2, n_rows)
    return rng.normal(size=(n_rows, 2)) + 1.2 * y[:, None], y


def write(path, X, y):
    columns = dict(zip(NAMES, X.T, strict=True))
    return mr.scan_parquet(write_table(path, {**columns, "y": y}), target="y")


PHI = {0: mr.LogisticMissingness([-2.0, -3.0], [0.4, 0.3])}


@pytest.mark.usefixtures("blockwise")
@pytest.mark.parametrize("missingness", [None, PHI], ids=["complete", "missing"])
def test_the_error_exceeds_alpha_as_often_as_delta_allows(missingness, tmp_path):
    alpha, delta, n_repeats = 0.1, 0.2, 20
    rng = np.random.default_rng(1)
    fresh = rng.normal(size=(20_000, 2))
    broken = 0
    for repeat in range(n_repeats):
        X, y = labelled(rng, 1500)
        if missingness is not None:
            X[y == 0] = mr.corrupt(X[y == 0], PHI[0], random_state=repeat)
        classifier = mr.NeymanPearsonClassifier(
            mr.KLIEP(), alpha, delta, missingness=missingness, random_state=repeat
        ).fit(write(tmp_path / "t.parquet", X, y))
        error = np.mean(classifier.predict(pd.DataFrame(fresh, columns=NAMES)) == 1)
        broken += error > alpha
    assert broken / n_repeats <= delta + 3 * np.sqrt(delta * (1 - delta) / n_repeats)


@pytest.mark.usefixtures("blockwise")
def test_rows_to_calibrate_on_are_not_fitted_on(tmp_path):
    rng = np.random.default_rng(0)
    X, y = labelled(rng, 3000)
    source = write(tmp_path / "t.parquet", X, y)
    rest, _, _, (held, *_) = split.hold_out(source, 0, 0.3, seed=5)
    _, _, _, (again, *_) = split.hold_out(source, 0, 0.3, seed=5)
    np.testing.assert_array_equal(held, again)
    kept = []
    rest.fold(lambda block: kept.append(block.rows) or 0, sum)
    both = np.concatenate([held, *kept])
    assert len(both) == len(X)
    assert len(np.unique(both, axis=0)) == len(X)
    share, n_controlled = len(held) / np.sum(y == 0), np.sum(y == 0)
    assert abs(share - 0.3) < 4 * np.sqrt(0.21 / n_controlled)


@pytest.mark.usefixtures("blockwise")
def test_what_cannot_stream_is_refused(tmp_path):
    source = write(tmp_path / "t.parquet", *labelled(np.random.default_rng(0), 500))
    for options, message in (
        ({"estimator": LogisticRegression()}, "LogisticRegression can't be fitted"),
        ({"calibration_size": 100}, "a share between 0 and 1"),
        ({"controlled_class": 7}, "controlled class 7"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            certified(**{"estimator": mr.KLIEP(), **options}).fit(source)
