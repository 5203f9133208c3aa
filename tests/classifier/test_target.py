"""Certificates for a population whose columns are distributed otherwise."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import WeakTargetWarning
from missratio.threshold import CalibrationSample, TargetRule

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import target as simulation

SHIFT = np.array([0.7, 0.3])
SETTING = simulation.Setting(SHIFT, 4000, 3000, 0.1, 0.05, 0.0)


def draw(seed=0):
    rng = np.random.default_rng(seed)
    X, y = SETTING.labelled(rng, 4000, 0.0)
    return X, y, rng.normal(size=(3000, 2)) + SHIFT


def classifier(**kwargs):
    return mr.NeymanPearsonClassifier(
        LogisticRegression(), alpha=0.1, random_state=0, **kwargs
    )


@pytest.mark.parametrize("way", ["known", "learned"])
def test_the_error_is_bounded_where_the_classifier_is_used(way):
    X, y, target = draw()
    given = simulation.KnownRatio(SHIFT) if way == "known" else target
    fitted = classifier().fit(X, y, target=given)
    plain = classifier().fit(X, y)
    X, y = SETTING.labelled(np.random.default_rng(1), 60_000, SHIFT)
    wrong = fitted.predict(X)[y == 0].mean()
    assert 0.05 < wrong <= 0.1
    assert plain.predict(X)[y == 0].mean() > 0.1
    certificate = fitted.certificate_
    assert certificate.rule == "target"
    assert certificate.target_rows == (0 if way == "known" else 3000)
    assert certificate.target_factor >= 1.0
    assert "the target's complete class-0 rows" in str(certificate)
    assert "covariate shift" in str(certificate)
    assert ("not allowed for" in str(certificate)) == (certificate.target_factor >= 1)
    assert certificate.to_dict()["target_rows"] == certificate.target_rows


def test_no_shift_costs_little_and_allowing_for_errors_costs_more():
    X, y, _ = draw()
    same = simulation.KnownRatio(np.zeros(2))
    plain = classifier().fit(X, y).threshold_
    exact = classifier().fit(X, y, target=same).threshold_
    assert plain == pytest.approx(exact, abs=0.25)
    wide = classifier(target_factor=1.2).fit(X, y, target=same)
    assert wide.threshold_ > exact
    assert wide.certificate_.target_factor >= 1.2
    assert "a factor of up to 1.2 either way" in str(wide.certificate_)


def test_what_is_not_sound_is_refused():
    X, y, target = draw()
    target[0, 0] = np.nan
    with pytest.raises(ValueError, match="target row"):
        classifier().fit(X, y, target=target)
    with pytest.raises(ValueError, match="2 features"):
        classifier().fit(X, y, target=np.ones((10, 3)))
    with pytest.raises(ValueError, match="A target is for"):
        classifier(deployment="as-observed").fit(X, y, target=target[1:])
    with pytest.raises(ValueError, match="target_factor"):
        classifier(target_factor=0.5).fit(X, y, target=target[1:])
    with pytest.raises(ValueError, match="rule"):
        classifier(rule="counting").fit(X, y, target=target[1:])
    sample = CalibrationSample.build([1.0], [1.0])
    with pytest.raises(ValueError, match="largest missing probability"):
        TargetRule(sample).select(sample, 0.1, 0.05)


class Given:
    """A ratio that is any function of the rows."""

    def __init__(self, log_ratio):
        self.log_ratio = log_ratio

    def predict_log_ratio(self, X):
        return self.log_ratio(np.asarray(X))


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.inf, r"must be finite, .*: Given.predict_log_ratio gave \+inf at"),
        (np.nan, "not NaN: Given.*Give a ratio"),
        (-np.inf, "above 0 at some rows.*of [0-9]+ training rows.*Give a"),
    ],
)
def test_a_ratio_that_cant_weigh_rows_is_refused(value, match):
    X, y, _ = draw()
    with pytest.raises(ValueError, match=match):
        classifier().fit(X, y, target=Given(lambda X: np.full(len(X), value)))


def test_few_target_rows_and_few_rows_like_them_are_said():
    X, y, target = draw()
    with pytest.warns(WeakTargetWarning, match="from 49 target row"):
        classifier().fit(X, y, target=target[:49])
    narrow = Given(lambda X: np.where(np.abs(X[:, 0]) < 0.005, 0.0, -np.inf))
    with pytest.warns(WeakTargetWarning, match="rows are worth"):
        classifier(on_infeasible="reject_all").fit(X, y, target=narrow)


def test_a_target_is_kept_its_promise_in_a_short_simulation():
    found = simulation.simulate(simulation.Setting.draw(0), "learned", repeats=20)
    assert found.certified > 15
    assert found.p_value > 1e-3
