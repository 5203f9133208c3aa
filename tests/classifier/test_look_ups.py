"""Certificates from look-ups: nothing is assumed about why values are missing."""

import numpy as np
import pytest
from classifiers import certified
from data import look_up
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import NoCertificateError


def looked_up(n_rows, n_drawn, seed=0, *, lost=0.0, slope=3.0):
    """Two classes; high values of the first column are missing, in both alike."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n_rows)
    full = rng.normal(y[:, None] * 1.5, 1.0, (2 * n_rows, 2))
    gone = rng.uniform(size=len(y)) < 1 / (1 + np.exp(1.0 - slope * full[:, 0]))
    X = full.copy()
    X[gone, 0] = np.nan
    inclusion = np.where(gone, 0.0, 1.0)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(gone & (y == label)))
        drawn = rows[:n_drawn]
        found = drawn[full[drawn, 0] < np.quantile(full[drawn, 0], 1 - lost)]
        found = drawn if lost == 0.0 else found
        X[found, 0] = full[found, 0]
        inclusion[drawn] = len(found) / len(rows)
    return X, y, inclusion, full


def test_the_certificate_names_no_model():
    X, y, inclusion, _ = looked_up(600, 150)
    clf = certified().fit(X, y, inclusion=inclusion)
    certificate = clf.certificate_
    assert certificate.rule == "look-ups"
    assert "nothing about why values are missing" in str(certificate)
    assert "drawn at random" in str(certificate)
    held = clf.calibration_index_
    drawn = (inclusion[held] > 0.0) & (inclusion[held] < 1.0)
    assert certificate.looked_up == drawn.sum()
    assert certificate.not_found == 0
    assert certificate.sensitivity is None


def true_error(clf, seed=99):
    fresh = np.random.default_rng(seed).normal(size=(20_000, 2))
    return float((clf.predict(fresh) != 0).mean())


def test_the_error_is_bounded_where_complete_cases_break_it():
    errors, ignored = [], []
    for seed in range(24):
        X, y, inclusion, _ = looked_up(1000, 100, seed)
        clf = certified(on_infeasible="reject_all", random_state=seed)
        errors.append(true_error(clf.fit(X, y, inclusion=inclusion)))
        # Weights left out: looked-up rows as if all that are incomplete were there.
        known = inclusion > 0
        ignored.append(true_error(clf.fit(X[known], y[known])))
    assert np.mean(np.array(errors) > 0.1) <= 0.2
    assert np.mean(np.array(ignored) > 0.1) > 0.5
    assert np.mean(errors) > 0.04


def test_rows_not_found_are_counted_and_make_it_stricter():
    X, y, inclusion, _ = looked_up(600, 150, lost=0.1)
    clf = certified().fit(X, y, inclusion=inclusion)
    assert clf.certificate_.not_found > 0
    assert "not found and count as errors" in str(clf.certificate_)
    complete = ~np.isnan(X[clf.calibration_index_]).any(axis=1)
    assert clf.certificate_.observed == complete.sum()
    whole = looked_up(600, 150)
    other = certified().fit(*whole[:2], inclusion=whole[2])
    assert clf.certificate_.threshold > other.certificate_.threshold
    model, rows = LogisticRegression().fit(whole[3], y), y == 0
    clf = mr.NeymanPearsonClassifier(model, alpha=0.1)
    clf.calibrate(X[rows], inclusion=inclusion[rows])
    assert clf.certificate_.rule == "look-ups"
    assert clf.certificate_.rows == rows.sum()
    X, y, inclusion, _ = looked_up(400, 6)
    with pytest.raises(NoCertificateError, match=r"Look up \d+ of them or more"):
        certified(alpha=0.05).fit(X, y, inclusion=inclusion)


def test_everything_looked_up_is_the_complete_table():
    X, y, _, full = looked_up(300, 10**6)
    np.testing.assert_array_equal(X, full)
    filled = certified().fit(X, y, inclusion=np.ones(len(y)))
    complete = certified().fit(full, y)
    assert filled.threshold_ == complete.threshold_
    assert filled.certificate_.rule == "binomial"


def test_entries_are_strata_by_pattern():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 1500)
    full = rng.normal(y[:, None] * 1.5, 1.0, (3000, 2))
    lost = rng.uniform(size=full.shape) < 0.2
    parts = [look_up(full[y == k], lost[y == k], 150, rng) for k in (0, 1)]
    X, inclusion = (np.concatenate(each) for each in zip(*parts, strict=True))
    clf = certified().fit(X, y, inclusion=inclusion)
    assert clf.certificate_.rule == "look-ups"
    assert true_error(clf) <= 0.1


def test_a_model_another_rule_and_a_draw_are_not_mixed():
    X, y, inclusion, _ = looked_up(100, 20)
    phi = mr.LogisticMissingness([0.0, 0.0], [1.0, 0.0])
    for option, match in (
        ({"missingness": {0: phi}}, "weighed twice"),
        ({"rule": "thinning"}, "rule"),
        ({"deployment": "as-observed"}, "deployment='complete'"),
    ):
        with pytest.raises(ValueError, match=match):
            certified(**option).fit(X, y, inclusion=inclusion)


def test_one_class_may_have_a_model_and_the_other_look_ups():
    X, y, inclusion, _ = looked_up(800, 120, slope=1.0)
    lost = np.isnan(X[:, 0]) | (inclusion < 1.0)
    other = y == 1
    phi = mr.LogisticMissingness([-1.0, -np.inf], [1.0, 0.0])
    entries = np.ones(X.shape)
    entries[other, 0] = inclusion[other]
    entries[~other, 0] = np.where(lost[~other], 0.0, 1.0)
    table = X.copy()
    table[~other & lost, 0] = np.nan
    clf = certified(mr.KLIEP(l2=0.01), alpha=0.2, missingness={0: phi})
    clf.fit(table, y, inclusion=entries)
    assert clf.certificate_.rule != "look-ups"
    assert clf.certificate_.certified
    assert true_error(clf) < 0.2
