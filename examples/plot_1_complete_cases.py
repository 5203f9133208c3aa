"""
Complete cases mislead
======================

Class 1 loses values because of what they are. A ratio learned from the rows that are
left is that of another distribution, however many rows there are. Weights put it back.
"""

# %%
# Class 1 is N(½, 1) and class 0 is N(0, 1), so the true log ratio is z/2 − ⅛. Nine in
# ten values of class 1 above zero are lost.

import matplotlib.pyplot as plt
import numpy as np

import missratio as mr

rng = np.random.default_rng(0)
n = 10_000
Z1, Z0 = rng.normal(0.5, 1, (n, 1)), rng.normal(0, 1, (n, 1))
phi = mr.StepMissingness(direction=1.0, threshold=0.0, probability=0.9)
X1 = mr.corrupt(Z1, phi, rng)
lost = np.isnan(X1).mean()
print(f"{lost:.0%} of class 1 is lost")

# %%
# `density_ratio` takes a sample of each class. With the model φ it is M-KLIEP, and with
# ``missingness="ignore"`` the complete-case CC-KLIEP.

weighted = mr.density_ratio(X1, Z0, missingness={1: phi})
complete_case = mr.density_ratio(X1, Z0, missingness="ignore")
for name, ratio in (("M-KLIEP", weighted), ("CC-KLIEP", complete_case)):
    slope, intercept = ratio.coef_[0], ratio.intercept_
    print(f"{name:8}  log r(z) = {slope:+.2f} z {intercept:+.2f}")

# %%
# Complete cases get the sign wrong: what they see of class 1 lies to the left of class
# 0, and so high values speak for class 0.

grid = np.linspace(-3, 4, 200)[:, None]
bins = np.linspace(-3, 4, 43)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.hist(Z0, bins, histtype="step", color="black", label="class 0")
left.hist(Z1, bins, color="#56B4E9", alpha=0.4, label="class 1, lost")
left.hist(X1[~np.isnan(X1)], bins, color="#0072B2", label="class 1, observed")
left.set(xlabel="z", ylabel="rows", title="Class 1 loses its high values")
left.legend(frameon=False)

right.plot(grid, grid / 2 - 1 / 8, color="black", label="true")
right.plot(
    grid, weighted.predict_log_ratio(grid), "--", color="#0072B2", label="M-KLIEP"
)
right.plot(
    grid, complete_case.predict_log_ratio(grid), ":", color="#D55E00", label="CC-KLIEP"
)
right.set(xlabel="z", ylabel="log ratio", title="Complete cases turn the ratio round")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# The price of the weights is variance: the few rows observed above zero count ten
# times each. Kish's effective sample size says how many equally
# weighted rows would be as precise.

size = weighted.effective_sample_size_[1]
print(
    f"{size.rows} rows, {size.observed} observed, effective sample size {size.kish:.0f}"
)
