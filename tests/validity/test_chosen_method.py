"""Certificates hold where the method was chosen by a comparison."""

import warnings

import numpy as np
import pytest
from classifiers import certified
from promises import kept

import missratio as mr
from missratio.app.workflow.methods import Situation, candidates
from missratio.classifier import PowerSearch

pytestmark = pytest.mark.validity

RUNS, ALPHA, DELTA = 60, 0.15, 0.1


@pytest.mark.parametrize("missing", ["nothing", "values", "ignored"])
def test_the_guarantee_holds_for_the_method_that_is_chosen(missing):
    rng = np.random.default_rng(["nothing", "values", "ignored"].index(missing))
    failures, chosen = 0, set()
    for run in range(RUNS):
        # Two normal classes in a few columns, and φ of the controlled one.
        d = int(rng.integers(2, 5))
        shift, spread = rng.normal(0.8, 0.4, d), rng.uniform(0.6, 1.8, d)
        ends = rng.uniform(-3, -1.5, d), rng.uniform(-0.8, 0.8, d)
        phi, n = mr.LogisticMissingness(*ends), int(rng.integers(200, 400))
        fresh, Z0 = rng.normal(size=(20_000, d)), rng.normal(size=(n, d))
        if missing != "nothing":
            Z0 = mr.corrupt(Z0, phi, rng)
        if missing == "ignored":
            fresh = mr.corrupt(fresh, phi, rng)
        X = np.concatenate([Z0, rng.normal(shift, spread, (n, d))])
        made = candidates(Situation(d, 0, missing, n // 2, run))
        # Slow, and chosen as the others are.
        made.pop("imputed-trees", None)
        deployment = "as-observed" if missing == "ignored" else "complete"
        how = {"deployment": deployment, "random_state": run}
        clf = certified(
            PowerSearch(made, ALPHA, cv=2, **how), alpha=ALPHA, delta=DELTA,
            missingness={0: phi} if missing == "values" else None,
            on_infeasible="reject_all", **how,
        )  # fmt: skip
        with warnings.catch_warnings(action="ignore"):
            clf.fit(X, np.repeat([0, 1], n))
        failures += clf.predict(fresh).mean() > ALPHA
        chosen.add(clf.estimator_.comparison_.chosen)
    assert kept(failures, RUNS, DELTA)
    # Settings differ enough for the choice to matter.
    assert len(chosen) >= 2
