"""Columns of text are named by the error that they get."""

import numpy as np
import pytest
from optional_packages import optional

import missratio as mr

pd = optional("pandas")
pl = optional("polars")

RNG = np.random.default_rng(0)
NUMBERS = {"age": RNG.normal(size=40), "bp": RNG.normal(size=40)}
Y = np.arange(40) % 2
TEXTS = {"ward": ["east", "west"] * 20, "name": [f"P{i}" for i in range(40)]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("labels", [Y, np.array(["a", "b"])[Y]])
@pytest.mark.parametrize(
    "estimator",
    [mr.KLIEP(), mr.NaiveBayesRatio(), mr.NeymanPearsonClassifier(
        mr.KLIEP(), 0.3, controlled_class=None)],
)  # fmt: skip
def test_a_fit_names_them(make, labels, estimator):
    with pytest.raises(ValueError, match=r"column\(s\) 'ward', 'name' are not\. Leave"):
        estimator.fit(make({**NUMBERS, **TEXTS}), labels)


def test_a_prediction_names_them():
    ratio = mr.KLIEP().fit(pd.DataFrame(NUMBERS), Y)
    frame = pd.DataFrame({**NUMBERS, "bp": "high"})
    with pytest.raises(ValueError, match="'bp' are not"):
        ratio.predict_ratio(frame)


def test_numbers_that_are_objects_are_taken():
    frame = pd.DataFrame(NUMBERS)
    coef = mr.KLIEP().fit(frame.astype(object), Y).coef_
    np.testing.assert_array_equal(coef, mr.KLIEP().fit(frame, Y).coef_)


def test_other_errors_stay_what_they_are():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        mr.KLIEP().fit(pd.DataFrame(NUMBERS), Y[:-1])
