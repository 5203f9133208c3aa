"""What is promised, as data and in words; and what is not, where it can't be."""

import json
from dataclasses import fields

import numpy as np
import pytest
from classifiers import certified
from data import stacked
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import required_calibration_rows

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


def few(n, missingness=None, **options):
    """A classifier on a fitted estimator and n calibration rows, none missing."""
    rng = np.random.default_rng(0)
    X, y = stacked(rng.normal(size=(50, 2)), rng.normal(2, 1, (50, 2)))
    fitted = LogisticRegression().fit(X, y)
    model = certified(fitted, delta=0.05, missingness=missingness, **options)
    rows = rng.normal(size=(n, 2))
    return model.calibrate(rows if missingness is None else mr.corrupt(rows, STEP, 0))


def test_too_few_rows_say_how_many_are_needed():
    with pytest.raises(ValueError, match="No threshold certifies") as error:
        few(28)
    message = str(error.value)
    assert "got 28 calibration rows" in message
    assert "needs 29 or more" in message
    assert few(29).certificate_.certified
    # Without a bound on φ, too.
    unbounded = mr.FunctionMissingness(lambda X: 0.8 * (X[:, 0] > 0))
    with pytest.raises(ValueError, match=r"No threshold certifies.* or more"):
        few(15, {0: unbounded})


@pytest.mark.parametrize("rule", ["paper", "bernstein", "betting"])
def test_the_number_that_is_needed_is_right(rule):
    needed = required_calibration_rows(0.1, 0.05, 0.8, rule)
    with pytest.raises(ValueError, match=f"{rule!r} needs {needed} or more"):
        few(needed - 1, {0: STEP}, rule=rule)
    assert few(needed, {0: STEP}, rule=rule).certificate_.certified


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
