"""The L1 path: each point is KLIEP's, and the table says what was selected."""

import numpy as np
import pytest

from missratio import KLIEP, KLIEPCV, LogisticMissingness, corrupt
from missratio.ratio import l1_path


def table(seed=0, n=250, d=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d))
    X[:n, 3] += 1.0
    X[:n, 7] -= 0.6
    return X, np.repeat([1, 0], n)


def test_every_point_of_the_path_is_a_fit():
    X, y = table()
    path = l1_path(X, y, n_strengths=6, random_state=0)
    assert not path.coef[0].any()
    for i in (2, 5):
        fitted = KLIEP(l1=path.l1[i], penalty_weights="standard-error").fit(X, y)
        np.testing.assert_allclose(path.coef[i], fitted.coef_, atol=1e-5)


def test_scores_are_those_of_cross_validation():
    X, y = table(1)
    plain = KLIEP(penalty_weights="standard-error")
    path = l1_path(X, y, plain, n_strengths=5, random_state=3)
    search = KLIEPCV(
        normalize="hajek", l1_grid=path.l1, l2_grid=[0.0], random_state=3,
        penalty_weights="standard-error",
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(path.score, search.cv_results_["mean_test_score"])
    assert path.l1[path.chosen] == search.l1_


@pytest.mark.parametrize("missing", [False, True])
def test_the_table_lists_features_in_the_order_in_which_they_enter(missing):
    X, y = table(2)
    options = {}
    if missing:
        phi = LogisticMissingness(np.full(12, -1.0), np.full(12, 1.0))
        X[y == 1] = corrupt(X[y == 1], phi, random_state=0)
        options = {"missingness": {1: phi}}
    estimator = KLIEP(penalty_weights="standard-error", **options)
    found = l1_path(X, y, estimator, random_state=0).table()
    assert set(found["feature"][:2]) == {"x3", "x7"}
    entering = found["enters_at"].to_numpy()
    assert (np.diff(entering[~np.isnan(entering)]) <= 0).all()
    chosen = found[found["selected"]]
    assert (chosen["coefficient"] != 0).all()
    assert (found[~found["selected"]]["coefficient"] == 0).all()
    assert {"x3", "x7"} <= set(chosen["feature"])


@pytest.mark.parametrize(
    ("estimator", "n_strengths", "error", "message"),
    [
        (KLIEPCV(), 30, TypeError, "KLIEP"),
        (None, 1, ValueError, "n_strengths"),
        (KLIEP(l2=[0.1] * 12), 30, ValueError, "one l2 for all features, got several"),
    ],
)
def test_what_makes_no_sense_is_refused(estimator, n_strengths, error, message):
    with pytest.raises(error, match=message):
        l1_path(*table(), estimator, n_strengths=n_strengths)
