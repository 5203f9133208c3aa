"""Categories that are complete may come as indicators."""

import numpy as np
from optional_packages import optional

import missratio as mr

pd = optional("pandas")


def test_indicators_of_a_complete_category_are_as_good_as_the_category():
    rng = np.random.default_rng(0)
    word = rng.choice(["a", "b", "c"], 2000)
    Z = rng.normal(size=(2000, 2))
    Z[:, 0] += 2.0 * (word == "b") + 3.0 * (word == "c")
    Z[:, 1] += Z[:, 0]
    X = mr.corrupt(Z, mr.LogisticMissingness([0.0, -1.0], [0.5, -0.5]), 0)

    def phi(width):
        never = [-np.inf] * width
        return mr.LogisticMissingness([0.0, -1.0, *never], [0.5, -0.5, *[0.0] * width])

    indicators = np.column_stack([X, word == "b", word == "c"]).astype(float)
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "word": word})
    apart = mr.TiltedImputer(phi(2), random_state=0).fit_transform(indicators)
    whole = mr.TiltedImputer(phi(1), random_state=0).fit_transform(frame)
    assert np.isnan(X).any()
    assert np.allclose(apart[:, :2], whole[["x", "y"]].to_numpy())
