"""
Covariate shift: importance weights for any learner
===================================================

Labels come from one population, and predictions are wanted for another. If only the
columns' law differs, a learner that weights its rows by the density ratio minimises the
risk where it will be used. Some of the labelled rows are missing as well.
"""

# %%
# The curve is a parabola, and the learner a straight line: which line is best depends
# on where it is used. Labelled rows lie on the left and lose four in five of those
# above 0.5; the rows to be predicted lie on the right.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import missratio as mr

rng = np.random.default_rng(0)
phi = mr.StepMissingness(direction=[1.0], threshold=0.5, probability=0.8)


def curve(x):
    return (x**2).ravel()


def draw(n):
    labelled = rng.normal(0.0, 0.8, (n, 1))
    target = rng.normal(0.9, 0.5, (n, 1))
    return mr.corrupt(labelled, phi, random_state=rng), target


def learn(X, weights):
    seen = ~np.isnan(X[:, 0])
    y = curve(X[seen]) + rng.normal(0, 0.2, seen.sum())
    return LinearRegression().fit(X[seen], y, sample_weight=weights[seen])


# %%
# Weights sum to the number of rows. `clip` cuts the largest ratios, for less variance.

X0, X1 = draw(2000)
ratio = mr.density_ratio(
    X1, X0, mr.KernelRatio("kliep", random_state=0), missingness={0: phi}
)
weights = {
    "unweighted": np.ones(len(X0)),
    "ratio, clipped at 5": ratio.importance_weights(X0, clip=5.0),
    "ratio": ratio.importance_weights(X0),
}
fresh = rng.normal(0.9, 0.5, (100_000, 1))
print(f"sum of the weights: {weights['ratio'].sum():.1f} for {len(X0)} rows")
lines = {}
for name, weight in weights.items():
    lines[name] = learn(X0, weight)
    error = np.mean((lines[name].predict(fresh) - curve(fresh)) ** 2)
    print(f"{name:20} mean squared error where it is used {error:.3f}")
best = LinearRegression().fit(fresh, curve(fresh))
error = np.mean((best.predict(fresh) - curve(fresh)) ** 2)
print(f"{'best line':20} mean squared error where it is used {error:.3f}")

# %%
# The weighted line is close to the best that a line can be there.

at = np.linspace(-2.2, 2.4, 100)[:, None]
fig, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
seen = ~np.isnan(X0[:, 0])
ax.scatter(
    X0[seen, 0], curve(X0[seen]) + rng.normal(0, 0.2, seen.sum()),
    s=3 + 8 * weights["ratio"][seen], alpha=0.3, color="0.4", linewidths=0,
    label="labelled rows, by their weight",
)  # fmt: skip
ax.plot(at, curve(at), color="black", label="truth")
for (name, line), colour in zip(
    lines.items(), ("#D55E00", "#56B4E9", "#0072B2"), strict=True
):
    ax.plot(at, line.predict(at), color=colour, label=name)
ax.axvspan(0.9 - 1.0, 0.9 + 1.0, color="#009E73", alpha=0.08)
ax.text(0.9, 4.6, "95% of the rows to predict", ha="center", color="#00664d")
ax.set(xlabel="x", ylabel="y", ylim=(-3, 5))
ax.legend(frameon=False, loc="lower left", fontsize=9)
ax.spines[["top", "right"]].set_visible(False)
