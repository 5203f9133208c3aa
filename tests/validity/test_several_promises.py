"""Bounds on several classes, and promises to groups, hold together.

Settings are drawn at random from a seed; rows lose values in several ways. Variants
that are broken on purpose are caught.
"""

from dataclasses import replace

import groups
import multiclass
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import UnorderedDecision
from missratio.exceptions import NoCertificateError

pytestmark = pytest.mark.validity

# Of all settings together one in a hundred correct ones would fail.
SURE = 0.01 / 30


@pytest.mark.parametrize("number", range(10))
def test_classes_keep_their_bounds_together(number):
    found = multiclass.simulate(multiclass.Setting.draw(number), repeats=40)
    assert found.p_value > SURE


def test_classes_that_leave_each_other_room_are_hardly_ever_refused():
    """The best border has errors of 0.57 of the bounds."""
    centres, refused = [(0.0, 0.0), (2.4, 0.0), (1.2, 2.5)], 0
    for seed in range(60):
        rng = np.random.default_rng([111, seed, 600])
        X = np.concatenate([rng.normal(centre, 1.0, (600, 2)) for centre in centres])
        model = mr.MulticlassNeymanPearsonClassifier(
            LogisticRegression(), {"a": 0.2, "b": 0.2}, delta=0.1, random_state=seed
        )
        try:
            model.fit(X, np.repeat(["a", "b", "c"], 600))
        except NoCertificateError:
            refused += 1
    assert refused <= 1


def without_confusion(self, class_scores, position):
    """Forgets the rows that another bounded class takes."""
    _, _, margin = self.contest(class_scores)
    return margin


def test_forgetting_what_bounded_classes_take_of_each_other_is_caught(monkeypatch):
    setting = replace(
        multiclass.Setting.draw(3),
        kind="complete",
        centres=np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 2.5]]),
        n_rows=(900, 900, 900),
        alpha={0: 0.1, 1: 0.1},
        is_ordered=False,
    )
    monkeypatch.setattr(UnorderedDecision, "scores", without_confusion)
    assert multiclass.simulate(setting, repeats=30).p_value < SURE


def test_leaving_out_weights_is_caught():
    setting = replace(
        multiclass.Setting.draw(1),
        kind="rows",
        centres=np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0]]),
        n_rows=(1000, 600, 600),
        alpha={0: 0.1},
        is_ordered=False,
        slope=1.5,
    )
    assert multiclass.simulate(setting, repeats=30).p_value > SURE

    def unweighted(classifier):
        return classifier.set_params(missingness=None, deployment="as-observed")

    assert multiclass.simulate(setting, 30, unweighted).p_value < SURE


@pytest.mark.parametrize("number", range(6))
def test_groups_are_kept_their_promises(number):
    found = groups.simulate(groups.Setting.draw(number), repeats=50)
    assert found.certified > 25
    assert found.p_value > SURE


@pytest.mark.parametrize("number", range(6))
def test_groups_whose_rows_are_capped_or_looked_up_are_kept_their_promises(number):
    setting = groups.LostSetting.draw(number)
    found = groups.simulate(setting, 30 if setting.kind == "caps" else 100)
    assert found.certified > 0.8 * found.repeats
    assert found.p_value > SURE


class Changed:
    """A classifier of groups that is broken on purpose."""

    def __init__(self, classifier):
        self.inner = classifier


class Pooled(Changed):
    """Each group gets the threshold that all rows together need."""

    def fit(self, X, y, members):
        fitted = self.inner.fit(X, y, np.zeros(len(y)))
        groups = dict.fromkeys(np.unique(members).tolist())
        (one,) = fitted.certificate_.certificates
        fitted.certificate_ = replace(
            fitted.certificate_, certificates=(one,) * len(groups), groups=(*groups,)
        )
        return fitted


class CapForgotten(Changed):
    """Rows above the cap are classified by their scores."""

    def fit(self, X, y, members):
        fitted = self.inner.fit(X, y, members)
        fitted.calibrations_ = tuple(
            replace(each, trust=replace(each.trust, cap=None))
            for each in fitted.calibrations_
        )
        return fitted


class LookUpsForgotten(Changed):
    """Rows that weren't found are left out, and those that were count once."""

    def fit(self, X, y, members, inclusion):
        there = ~np.isnan(X[:, 0]) & ((inclusion == 1.0) | (y == 1))
        return self.inner.fit(X[there], y[there], members[there])


def lost(kind):
    """Large values go missing, so that errors do."""
    number = groups.KINDS.index(kind)
    return replace(groups.LostSetting.draw(number), slope=4.0, intercept=-1.0)


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        (groups.Setting.draw(0), Pooled),
        (lost("caps"), CapForgotten),
        (lost("look-ups"), LookUpsForgotten),
    ],
    ids=["pooled", "cap", "look-ups"],
)
def test_what_breaks_promises_to_groups_is_caught(setting, change):
    assert groups.simulate(setting, 30, change).p_value < SURE
