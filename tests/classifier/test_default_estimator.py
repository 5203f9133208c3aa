"""What is fitted where no estimator is given."""

import numpy as np
import pytest
from classifiers import certified

import missratio as mr

PHI = mr.LogisticMissingness([-2.0] * 3, [0.5] * 3)
WHOLE = mr.StepMissingness([1.0, 0.0, 0.0], 0.0, 0.5)


@pytest.mark.parametrize(
    ("phi", "options", "first"),
    [
        (None, {}, "standardscaler"),
        (WHOLE, {"missingness": {"well": WHOLE}}, "standardscaler"),
        (PHI, {"missingness": {"well": PHI}}, "tiltedimputer"),
        (PHI, {"deployment": "as-observed"}, "simpleimputer"),
    ],
)
def test_it_is_a_penalised_logistic_fit_after_what_blanks_need(
    phi, options, first, tmp_path
):
    rng = np.random.default_rng(0)
    y = np.repeat(["well", "sick"], 700)
    # Columns of other sizes, which a penalty must not see.
    Z = (rng.normal(size=(1400, 3)) + 1.2 * (y == "sick")[:, None]) * [1.0, 100.0, 0.01]
    X, own = Z.copy(), Z[y == "well"] / [1.0, 100.0, 0.01]
    if phi is not None:
        X[y == "well"] = mr.corrupt(own, phi, random_state=0) * [1.0, 100.0, 0.01]
    if phi is PHI and "missingness" in options:
        scaled = mr.LogisticMissingness([-2.0] * 3, [0.5, 0.005, 50.0])
        options = {"missingness": {"well": scaled}}
    model = certified(None, controlled_class="well", **options).fit(X, y)
    assert model.estimator_.steps[0][0] == first
    assert model.estimator_.steps[-1][0] == "logisticregression"
    rows = X if options.get("deployment") else Z
    # Where entries are lost, a third of the calibration rows is complete.
    least = 0.25 if first == "tiltedimputer" else 0.5
    assert np.mean(model.predict(rows[y == "sick"]) == "sick") > least
    assert np.mean(model.predict(rows[y == "well"]) == "sick") < 0.13
    mr.save_model(model, tmp_path / "model.skops")
    again = mr.load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert model.get_params()["estimator"] is None


@pytest.mark.parametrize("models", [None, {0: PHI}])
def test_blanks_of_the_other_class_have_to_be_explained(two_normals, models):
    X, y = two_normals(300, 3)
    X[np.flatnonzero(y == 1)[:9], 0] = np.nan
    with pytest.raises(mr.exceptions.UnexplainedMissingError, match="class 1"):
        certified(None, missingness=models).fit(X, y)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("deployment", ["complete", "as-observed"])
def test_columns_of_words_are_categories(kind, deployment):
    frames = pytest.importorskip(kind)
    rng = np.random.default_rng(0)
    y = np.repeat(["well", "sick"], 600)
    word = np.where(rng.random(1200) < 0.3 + 0.4 * (y == "sick"), "yes", "no")
    number = rng.normal(size=1200) + (y == "sick")
    word = word.astype(object)
    if deployment == "as-observed":
        word[rng.random(1200) < 0.2] = None
        number[rng.random(1200) < 0.2] = np.nan
    X = frames.DataFrame({"word": word.tolist(), "number": number})
    options = {"controlled_class": "well", "deployment": deployment}
    model = certified(None, **options).fit(X, y)
    alone = certified(None, **options).fit(X[["number"]], y)
    assert mr.power(y, model.predict(X), controlled_class="well") > 0.3
    scores = [each.decision_function(rows) for each, rows in
              ((model, X), (alone, X[["number"]]))]  # fmt: skip
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    assert np.corrcoef(scores[0], signs)[0, 1] > np.corrcoef(scores[1], signs)[0, 1]
