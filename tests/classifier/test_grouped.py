"""Promises to groups."""

import groups as simulation
import numpy as np
import pytest
from classifiers import LINES

import missratio as mr
from missratio.exceptions import NoCertificateError


def draw(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice([0, 1], n)
    groups = rng.choice(["old", "young", "tiny"], n, p=[0.5, 0.49, 0.01])
    X = rng.normal(size=(n, 2)) + 2.0 * y[:, None] + 0.8 * (groups == "old")[:, None]
    return X, y, groups


def classifier(estimator=LINES, **kwargs):
    given = {"alpha": 0.1, "random_state": 0, "on_infeasible": "reject_all", **kwargs}
    return mr.GroupedNeymanPearsonClassifier(estimator, **given)


def test_each_group_gets_a_threshold_and_a_line_of_its_own():
    fitted = classifier().fit(*draw())
    table = fitted.certificate_.to_frame().set_index("group")
    assert table.loc["old", "certified"]
    assert table.loc["young", "bound"] <= 0.1
    assert table["delta"].sum() == pytest.approx(0.05)
    # Too few rows: said, and nothing is given to the other class there.
    assert not table.loc["tiny", "certified"]
    X, y, groups = draw(40_000, seed=1)
    given = fitted.predict(X, groups)
    for group in ("old", "young", "tiny"):
        assert given[(groups == group) & (y == 0)].mean() <= 0.1
    assert not given[groups == "tiny"].any()
    assert given[(groups == "old") & (y == 1)].mean() > 0.4
    assert "too few for 10%" in str(fitted.certificate_)
    assert fitted.certificate_.to_dict()["promises"][0]["kind"] == "error"


def test_a_group_may_have_a_level_of_its_own():
    X, y, groups = draw()
    one = classifier().fit(X, y, groups)
    two = classifier(group_alpha={"old": 0.05}).fit(X, y, groups)
    assert two.thresholds_["old"] > one.thresholds_["old"]
    assert two.thresholds_["young"] == one.thresholds_["young"]
    predicted, old = two.predict(X, groups), (groups == "old") & (y == 0)
    assert predicted[old].mean() < 0.06


@pytest.mark.parametrize(
    ("setting", "repeats"),
    [
        (simulation.Setting.draw(2), 30),
        (simulation.LostSetting.draw(0), 5),
        (simulation.LostSetting.draw(1), 20),
    ],
)
def test_promises_are_kept_in_a_short_simulation(setting, repeats):
    found = simulation.simulate(setting, repeats)
    assert found.certified > 0.7 * repeats
    assert found.p_value > 1e-3


@pytest.mark.parametrize("lost", [False, True])
def test_every_group_of_the_table_has_a_line(lost):
    X, y, groups = draw()
    # A group without a row of the controlled class has nothing to calibrate on.
    groups = np.where((groups == "tiny") & (y == 0), "old", groups)
    given = {}
    if lost:
        phi = mr.FunctionMissingness(lambda x: 0.2 + 0.3 * (x[:, 0] > 1), maximum=0.5)
        X[y == 0] = mr.corrupt(X[y == 0], phi, 0)
        given = {"missingness": {0: phi}}
    fitted = classifier(**given).fit(X, y, groups)
    table = fitted.certificate_.to_frame().set_index("group")
    assert table.loc["tiny", "rows"] == 0
    assert not table.loc["tiny", "certified"]
    assert table.loc["old", "certified"]
    with pytest.raises(NoCertificateError, match=r"'tiny': .* 0 calibration rows"):
        classifier(on_infeasible="raise", **given).fit(X, y, groups)


def test_a_cap_gives_rows_up_to_the_controlled_class():
    rng = np.random.default_rng(0)
    phi = mr.LogisticMissingness([-2.0, -2.0], [0.8, 0.8])
    y, groups = np.repeat([0, 1], 1500), rng.choice(["old", "young"], 3000)
    X = rng.normal(size=(3000, 2)) + 2.0 * y[:, None]
    X[y == 0] = mr.corrupt(X[y == 0], phi, 0)
    clf = classifier(mr.FDivergenceRatio("js"), alpha=0.05, missingness={0: phi})
    clf.fit(X, y, groups)
    assert all(each.certified for each in clf.certificate_.certificates)
    assert clf.calibrations_[0].trust.cap is not None
    assert clf.predict([[40.0, 40.0]], ["old"]).tolist() == [0]
