"""φ by the names of columns: the same model, wherever the columns are."""

import pickle

import numpy as np
import pytest
from optional_packages import optional

import missratio as mr
from missratio.missingness import NamedMissingness

pd = optional("pandas")
pl = optional("polars")

NAMED = mr.LogisticMissingness.from_columns({"bp": (-1.0, 0.8), "age": (-2.0, 0.1)})
PLACED = mr.LogisticMissingness([-np.inf, -1.0, -2.0], [0.0, 0.8, 0.1])


def labelled(n=300, seed=0):
    rng = np.random.default_rng(seed)
    Z0, Z1 = rng.normal(size=(n, 3)), rng.normal(0.7, 1.0, (n, 3))
    X = np.concatenate([Z0, mr.corrupt(Z1, PLACED, rng)])
    return pd.DataFrame(X, columns=["sugar", "bp", "age"]), np.repeat([0, 1], n)


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas])
def test_it_is_the_model_of_the_columns_wherever_they_are(make):
    X, _ = labelled()
    for order in (["sugar", "bp", "age"], ["age", "sugar", "bp"]):
        frame, places = make(X[order]), [list(X.columns).index(name) for name in order]
        np.testing.assert_array_equal(
            NAMED.missing_probability(frame), PLACED.missing_probability(X)[:, places]
        )
        np.testing.assert_array_equal(
            NAMED.weights(frame), PLACED.weights(X)[:, places]
        )


def test_names_for_an_array():
    found = mr.LogisticMissingness.from_columns(
        {"bp": (-1.0, 0.8), "age": (-2.0, 0.1)}, names=["sugar", "bp", "age"]
    )
    assert isinstance(found, mr.LogisticMissingness)
    np.testing.assert_array_equal(found.intercept, PLACED.intercept)
    np.testing.assert_array_equal(found.coef, PLACED.coef)


def fits(model, X, y):
    models = {1: model}
    yield mr.KLIEP(missingness=models).fit(X, y).coef_
    yield mr.NaiveBayesRatio(missingness=models).fit(X, y).coef_
    yield mr.FDivergenceRatio(missingness=models).fit(X, y).coef_
    ratio = mr.KLIEP(missingness=models).fit(X, y)
    yield mr.ratio_uncertainty(ratio, X, y).standard_errors
    classifier = mr.NeymanPearsonClassifier(
        mr.KLIEP(), 0.1, missingness=models, controlled_class=1, random_state=0
    ).fit(X, y)
    yield classifier.threshold_
    yield classifier.predict(X) == 1
    imputer = mr.TiltedImputer(models, random_state=0)
    yield np.asarray(imputer.fit_transform(X, y))
    yield mr.corrupt(X.fillna(0.0), model, 0).to_numpy()
    yield [check.p_value for check in mr.missingness_check(X[y == 1], model)]


def test_every_estimator_takes_it_as_it_takes_the_other():
    X, y = labelled()
    for found, expected in zip(fits(NAMED, X, y), fits(PLACED, X, y), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_it_can_be_copied_and_saved(tmp_path):
    again = pickle.loads(pickle.dumps(NAMED))
    assert dict(again.columns) == dict(NAMED.columns)
    X, y = labelled()
    clf = mr.NeymanPearsonClassifier(
        mr.KLIEP(), 0.1, missingness={1: NAMED}, controlled_class=1, random_state=0
    ).fit(X, y)
    mr.save_model(clf, tmp_path / "m.skops")
    loaded = mr.load_model(tmp_path / "m.skops")
    assert (loaded.predict(X) == clf.predict(X)).all()


def test_an_array_without_names_is_refused():
    X, y = labelled()
    for call in (
        lambda: NAMED.missing_probability(X.to_numpy()),
        lambda: mr.KLIEP(missingness={1: NAMED}).fit(X.to_numpy(), y),
        lambda: mr.corrupt(X.to_numpy(), NAMED, 0),
    ):
        with pytest.raises(ValueError, match="doesn't name its columns"):
            call()


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ({}, ValueError, "No column is named"),
        ({"bp": -1.0}, ValueError, "needs \\(intercept, coef\\)"),
        ({"bp": (np.nan, 1.0)}, ValueError, "intercept must be finite"),
        ({"bp": (0.0, np.inf)}, ValueError, "coef must be finite"),
        ({3: (0.0, 1.0)}, TypeError, "named by texts"),
    ],
)
def test_bad_columns_are_refused(columns, error, match):
    with pytest.raises(error, match=match):
        NamedMissingness(columns)


def test_a_column_that_isnt_there_is_refused_with_a_hint():
    X, y = labelled()
    model = mr.LogisticMissingness.from_columns({"agee": (-1.0, 0.8)})
    with pytest.raises(ValueError, match=r"'agee'\. Did you mean 'age'"):
        mr.KLIEP(missingness={1: model}).fit(X, y)
