"""What is promised, as data and in words; and what is not, where it can't be."""

import json
import re
from dataclasses import fields

import numpy as np
import pytest
from classifiers import certified
from data import stacked
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import required_calibration_rows
from missratio.exceptions import NoCertificateError

STEP = mr.StepMissingness([1.0, 0.0], 0.0, 0.8)


@pytest.fixture
def model(two_normals):
    X, y = two_normals(500, 2, shift=1.5)
    names = np.array(["healthy", "ill"])[y]
    return certified(mr.KLIEP(), delta=0.05, controlled_class="healthy").fit(X, names)


def test_the_certificate_is_plain_data(model):
    data = model.certificate_.to_dict()
    names = {field.name for field in fields(model.certificate_)}
    assert set(data) == names | {"valid_while"}
    back = json.loads(json.dumps(data))
    assert back["alpha"] == 0.1
    assert back["rows"] == back["observed"] == 250
    assert back["effective_rows"] == 250
    assert back["threshold"] == model.threshold_
    assert back["estimated_error"] <= back["error_bound"] <= 0.1
    assert back["certified"] is True


def test_the_certificate_says_in_words_what_it_promises(model):
    words = str(model.certificate_)
    for part in (
        "At most 10% of complete 'healthy' rows are classified as 'ill'. The chance "
        "that this is wrong is at most 5%, over the draw of the calibration rows.",
        "'binomial'",
        "250 calibration rows",
        f"{model.threshold_:.6g}",
        "It assumes:",
        "none of their values is missing",
        "as long as new 'healthy' rows",
    ):
        assert part in words


def few(n, phi=None, seed=0, times=1, **options):
    """A classifier on a fitted estimator and so many rows to calibrate."""
    rows = np.random.default_rng(seed).normal(size=(n, 2))
    fitted = LogisticRegression().fit(*stacked(rows, rows + 2.0))
    rows = rows if phi is None else mr.corrupt(rows, phi, seed)
    model = certified(fitted, delta=0.05, missingness={0: phi}, **options)
    return model.calibrate(np.tile(rows, (times, 1)))


def advised(n, *given, **options):
    with pytest.raises(NoCertificateError, match=f"got {n} calibration rows") as error:
        few(n, *given, **options | {"on_infeasible": "raise"})
    said = rf"{options['rule']!r} needs (?:about )?(\d+) or more"
    number = re.search(said, str(error.value))
    return int(number[1]) if number else np.inf


@pytest.mark.parametrize("rule", ["binomial", "paper", "bernstein", "betting"])
def test_the_number_that_is_needed_is_right(rule):
    phi, most = (None, 0.0) if rule == "binomial" else (STEP, 0.8)
    needed = required_calibration_rows(0.1, 0.05, most, rule)
    assert advised(needed - 1, phi, rule=rule) == needed
    assert few(needed, phi, rule=rule).certificate_.certified


@pytest.mark.filterwarnings("ignore::missratio.classifier.RepeatedRowsWarning")
@pytest.mark.parametrize(("n", "seed", "times"), [(20, 5, 3), (13, 1, 12), (5, 3, 62)])
def test_without_a_bound_rows_like_these_are_as_many_as_needed(n, seed, times):
    given = n, mr.LogisticMissingness(-1.0, [1.0, 0.0], True), seed
    rule = {"rule": "flipped-betting", "on_infeasible": "reject_all"}
    assert advised(*given, **rule) == times * n
    assert few(*given, times, **rule).certificate_.certified
    assert not few(*given, times - 1, **rule).certificate_.certified
    assert advised(9, mr.LogisticMissingness(30.0, [1.0, 0.0], True), **rule) == np.inf
    # A rule that draws may be unlucky with what does nine times in ten.
    phi, n = mr.StepMissingness([1.0, 0.0], -9.0, 0.6), 86
    assert advised(n, phi, 2, rule="thinning") > n


@pytest.mark.parametrize("controlled", [0, 1])
def test_everything_is_given_to_the_controlled_class_if_so_wished(
    two_normals, controlled
):
    X, y = two_normals(20, 2, shift=1.5)
    options = {"controlled_class": controlled, "on_infeasible": "reject_all"}
    model = certified(alpha=0.01, delta=0.05, **options).fit(X, y)
    certificate = model.certificate_
    assert (model.predict(X) == controlled).all()
    decision = model.decision_function(X)
    assert ((decision > 0) == bool(controlled)).all()
    assert not certificate.certified
    assert certificate.threshold == np.inf
    assert certificate.estimated_error == certificate.error_bound == 0.0
    assert "every row is classified as" in str(certificate)
    json.dumps(certificate.to_dict(), allow_nan=False)
