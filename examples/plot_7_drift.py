"""
Drift: two months of a table with missing values
================================================

Has the table changed from one month to the next, by how much, and in which columns?
Missing values make it hard to tell: the form that loses high incomes was changed
between the months, and that alone makes complete cases differ.
"""

# %%
# Income and spending are the same in both months; age shifts a little in June. In May
# the form lost 60% of incomes above average, in June 20%.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import missratio as mr

rng = np.random.default_rng(1)
names = ["income", "spending", "age"]


def month(n, age_shift):
    table = rng.multivariate_normal(
        [0.0, 0.0, age_shift], [[1, 0.6, 0], [0.6, 1, 0.2], [0, 0.2, 1]], n
    )
    return pd.DataFrame(table, columns=names)


def form(probability):
    return mr.StepMissingness(
        direction=[1.0, 0.0, 0.0],
        threshold=[0.0, 1e6, 1e6],
        probability=[probability, 0.0, 0.0],
        rowwise=False,
    )


phi = {0: form(0.6), 1: form(0.2)}
n = 1500


def two_months(age_shift):
    may, june = month(n, 0.0), month(n, age_shift)
    return [
        pd.DataFrame(mr.corrupt(X.to_numpy(), p, random_state=rng), columns=names)
        for X, p in ((june, phi[1]), (may, phi[0]))
    ]


# %%
# First without any drift. Complete cases show one, because the form has changed; the
# weighted test doesn't. Permutation isn't exact if φ differs by month, so the test uses
# a weighted bootstrap.

results = {}
for label, shift in (("no drift", 0.0), ("age drifts", 0.25)):
    june, may = two_months(shift)
    weighted = mr.ratio_test(june, may, missingness=phi, random_state=0)
    ignored = mr.ratio_test(june, may, missingness="ignore", random_state=0)
    results[label] = june, may
    print(
        f"{label:10} weighted p = {weighted.pvalue:.3f} ({weighted.method}), "
        f"complete cases p = {ignored.pvalue:.3f}"
    )

# %%
# How far apart are the months if age drifts? The truth is 0.25²/2 divided by one minus
# the share of age's variance that spending and income explain.

june, may = results["age drifts"]
found = mr.estimate_divergence(june, may, "kl", missingness=phi, random_state=0)
covariance = np.array([[1, 0.6, 0], [0.6, 1, 0.2], [0, 0.2, 1]])
shift = np.array([0.0, 0.0, 0.25])
truth = shift @ np.linalg.solve(covariance, shift) / 2
low, high = found.confidence_interval
print(f"KL divergence {found.estimate:.3f}, from {low:.3f} to {high:.3f} at 95%")
print(f"truth {truth:.3f}")

# %%
# Which columns? KLIEP along its L1 penalty, whose strength is chosen by
# cross-validation. A ratio of correlated columns needs those that correct for them as
# well.

X = pd.concat([june, may], ignore_index=True)
y = np.repeat([1, 0], n)
sparse = mr.KLIEPCV(
    missingness=phi,
    l1_grid=30,
    l2_grid=[0.0],
    penalty_weights="standard-error",
    random_state=0,
).fit(X, y)
print(pd.Series(sparse.coef_, index=X.columns, name="coefficient").to_string())

# %%
# The path, and log ratios in both months: they overlap, since the drift is small.

ratio = mr.KLIEP(missingness=phi, penalty_weights="standard-error")
strengths = sparse.cv_results_["param_l1"]
path = [ratio.set_params(l1=l1).fit(X, y).coef_ for l1 in strengths]
ratio.set_params(l1=0.0).fit(X, y)
fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
axes[0].plot(strengths, path, label=list(X.columns))
axes[0].axvline(sparse.l1_, color="0.5", linestyle=":", label="chosen")
axes[0].set(xscale="log", xlabel="strength of the L1 penalty", ylabel="coefficient")
axes[0].invert_xaxis()
axes[0].legend(frameon=False)
complete = X.notna().all(axis=1).to_numpy()
log_ratio = ratio.predict_log_ratio(X[complete])
for month, label in (("May", 0), ("June", 1)):
    axes[1].hist(
        log_ratio[y[complete] == label], 40, density=True, alpha=0.55, label=month
    )
axes[1].set(xlabel="log ratio", ylabel="density")
axes[1].legend(frameon=False)
axes[1].set_title("June over May")
