"""What is no number is named by the error that it gets; a mask means missing."""

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
@pytest.mark.parametrize("estimator", [mr.KLIEP(), mr.NaiveBayesRatio()])
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


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("others", [NUMBERS, {}])
@pytest.mark.parametrize("kind", ["M8[us]", "m8[us]"])
def test_dates_are_never_counted(make, others, kind):
    dates = np.arange(40).astype(kind)
    with pytest.raises(ValueError, match=r"'day' are not\..*of dates such as the days"):
        mr.KLIEP().fit(make({**others, "day": dates}), Y)
    with pytest.raises(ValueError, match=r"values of type .*the days since some date"):
        mr.KLIEP().fit(dates[:, None], Y)


def test_a_lazy_frame_holds_no_rows():
    with pytest.raises(TypeError, match=r"give X\.collect\(\)"):
        mr.KLIEP().fit(pl.LazyFrame(NUMBERS), Y)


MASKED = np.ma.masked_greater(np.column_stack(list(NUMBERS.values())), 1.0)
WITH_NAN = np.where(MASKED.mask, np.nan, MASKED.data)


@pytest.mark.parametrize(
    "of",
    [
        lambda X: mr.KLIEP(missingness="ignore").fit(X, Y).predict_log_ratio(X),
        lambda X: mr.NaiveBayesRatio(missingness="ignore").fit(X, Y).coef_,
        lambda X: mr.NeymanPearsonClassifier(
            mr.KLIEP(missingness="ignore"), 0.4, 0.4, deployment="as-observed",
            random_state=0).fit(X, Y).threshold_,
        lambda X: mr.PolynomialBasis(2).fit_transform(X),
        lambda X: mr.TiltedImputer("ignore", random_state=0).fit_transform(X, Y),
        lambda X: mr.ratio_test(X[::2], X[1::2], missingness="ignore",
                                n_resamples=9, random_state=0).statistic,
    ],
)  # fmt: skip
def test_what_is_masked_is_missing(of):
    np.testing.assert_array_equal(of(MASKED), of(WITH_NAN))
    with pytest.raises(ValueError, match="no missingness model"):
        mr.KLIEP().fit(MASKED, Y)
