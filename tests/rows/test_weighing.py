"""Which class a model of missingness is for."""

import numpy as np
import pytest
from data import two_normals

import missratio as mr

PHI = mr.LogisticMissingness(-1.0, [0.5, 0.5])


def table(*lossy):
    X, codes = two_normals(200, shift=-0.5)
    y = np.array(["sick", "well"])[codes]
    for label in lossy:
        X[y == label] = mr.corrupt(X[y == label], PHI, 0)
    return X, y


@pytest.mark.parametrize("label", ["sick", "well"])
@pytest.mark.parametrize("estimator", [mr.KLIEP(), mr.NaiveBayesRatio()], ids=repr)
def test_a_model_by_itself_is_that_of_the_class_with_blanks(estimator, label):
    X, y = table(label)
    named = estimator.set_params(missingness={label: PHI}).fit(X, y)
    expected = named.coef_.copy(), named.importance_weights(X), named.score(X, y)
    bare = estimator.set_params(missingness=PHI).fit(X, y)
    assert bare.missingness_ == {label: PHI}
    found = bare.coef_, bare.importance_weights(X), bare.score(X, y)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    # What an earlier fit found isn't taken for this one.
    other = "well" if label == "sick" else "sick"
    assert bare.fit(*table(other)).missingness_ == {other: PHI}


@pytest.mark.parametrize(
    ("lossy", "message"),
    [((), "no class has any"), (("sick", "well"), "classes 'sick', 'well' have some")],
)
def test_a_model_that_could_be_any_class_s_is_refused(lossy, message):
    with pytest.raises(ValueError, match=f"{message}. Say which class it is for"):
        mr.KLIEP(missingness=PHI).fit(*table(*lossy))
