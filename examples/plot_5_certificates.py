"""
Certified classifiers where the controlled class loses rows
===========================================================

A Neyman–Pearson classifier bounds the error on one class. Here that class loses the
very rows that look like the other one. Complete cases then break the promise, the
paper's rule keeps it by never saying "class 1", and the other rules keep it with power.
"""

# %%
# The score is z itself: N(0, 1) in class 0, the controlled one, and N(1.5, 1) in class
# 1. Class 0 loses rows by two φ: four in five of those above zero, where the decision
# is made, or of those below. The type I error at a threshold is known exactly, and so
# is the power.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binom, norm

import missratio as mr
from missratio.theory import oracle_power, oracle_threshold
from missratio.threshold import make_rule

alpha, delta, shift = 0.1, 0.05, 1.5
oracle = oracle_power(norm(shift), oracle_threshold(norm(), alpha))
losses = {
    "lost: four in five with z > 0": lambda z: 0.8 * (z > 0),
    "lost: four in five with z < 0": lambda z: 0.8 * (z < 0),
}


def draw(phi, n, rng):
    """Scores of class 0, and weights: 0 where the row is missing."""
    z = rng.normal(0, 1, n)
    weights = (rng.uniform(size=n) >= phi(z)) / (1 - phi(z))
    return z, weights


styles = {
    "complete cases": ("#D55E00", "s", "-"),
    "paper": ("#999999", "v", "-"),
    "bernstein": ("#CC79A7", "^", "--"),
    "thinning": ("#009E73", "o", "--"),
    "tuned-betting": ("#E69F00", "D", "--"),
    "auto": ("#0072B2", "o", "-"),
}

# %%
# A hundred calibration samples of each size. Rules that learn from training rows get
# as many of them. Complete cases are the binomial rule on the observed rows, as if they
# were all there.

rng = np.random.default_rng(0)
sizes = [100, 200, 300, 500, 1000, 2000, 5000, 10_000, 25_000]
n_samples = 100
thresholds = np.full((len(losses), len(styles), len(sizes), n_samples), np.inf)
for i, phi in enumerate(losses.values()):
    for k, n in enumerate(sizes):
        for repeat in range(n_samples):
            z, weights = draw(phi, n, rng)
            sample = mr.threshold.CalibrationSample.build(z, weights, bound=5)
            observed = mr.threshold.CalibrationSample.build(z[weights > 0])
            training = mr.threshold.CalibrationSample.build(*draw(phi, n, rng), bound=5)
            for j, name in enumerate(styles):
                naive = name == "complete cases"
                rule = make_rule(
                    "binomial" if naive else name, training=training, complete=naive
                )
                chosen = rule.select(observed if naive else sample, alpha, delta)
                if chosen.threshold is not None:
                    thresholds[i, j, k, repeat] = chosen.threshold
power = norm.sf(thresholds - shift).mean(axis=-1)
violations = (norm.sf(thresholds) > alpha).mean(axis=-1)

at = sizes.index(300)
for i, title in enumerate(losses):
    print(f"{title}; n = 300, oracle's power {oracle:.3f}")
    for j, name in enumerate(styles):
        broken, found = violations[i, j, at], power[i, j, at]
        print(f"  {name:16} broken {broken:.2f}  power {found:.3f}")

# %%
# Above: how often a threshold's error exceeds α; the dotted line is δ, and the grey
# band what chance may make of it in so many samples. Below: the power. Where the lost
# rows are those that matter, thinning is best, and ``auto`` follows it. Where they are
# not, a bet that is tuned on training rows does better, and ``auto`` follows that.
# Complete cases have the power of a broken promise, or throw power away where the lost
# rows lie below.

fig, axes = plt.subplots(
    2, 2, figsize=(10, 7.5), sharex=True, sharey="row", layout="constrained"
)
low, high = binom.interval(0.99, n_samples, delta) / np.array(n_samples)
for i, title in enumerate(losses):
    for j, (name, (colour, marker, line)) in enumerate(styles.items()):
        look = {"color": colour, "marker": marker, "linestyle": line, "markersize": 5}
        axes[0, i].plot(sizes, violations[i, j], **look)
        axes[1, i].plot(sizes, power[i, j], label=name, **look)
    axes[0, i].axhline(delta, color="black", linestyle=":")
    axes[0, i].axhspan(low, high, color="0.9", zorder=0)
    axes[1, i].axhline(oracle, color="black", linestyle=":", label="oracle")
    axes[0, i].set(title=title, xscale="log")
    axes[1, i].set(xlabel="calibration rows, lost ones included")
axes[0, 0].set_ylabel("share of promises broken")
axes[1, 0].set_ylabel("power")
handles = axes[1, 1].get_legend_handles_labels()
axes[0, 1].legend(*handles, frameon=False, loc="upper right", ncols=2)
for ax in axes.flat:
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Two classifiers can be compared by what they certify. Both are fitted to the same
# rows and scored on fresh ones; the band is of the power at the certified threshold.
# `compare_np_roc` asks for more: which of the two has more power at equal errors? Both
# have scored the same rows, so what they have in common cancels.

from sklearn.ensemble import HistGradientBoostingClassifier

n = 2000
mean, covariance = [1.0, 1.0], [[1.0, 0.6], [0.6, 1.0]]
phi = mr.StepMissingness(direction=[1.0, 1.0], threshold=0.0, probability=0.8)
Z0 = rng.multivariate_normal([0, 0], covariance, (2, n))
Z1 = rng.multivariate_normal(mean, covariance, (2, n))
X = np.concatenate([mr.corrupt(Z0[0], phi, rng), Z1[0]])
y = np.repeat([0, 1], n)
X0 = mr.corrupt(Z0[1], phi, rng)
weights = mr.weights.inverse_probability_weights(X0, phi)
bound = 1 / (1 - phi.maximum)

fig, ax = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
curves = []
for name, estimator in {
    "M-KLIEP": mr.KLIEP(),
    "boosted trees": HistGradientBoostingClassifier(random_state=0),
}.items():
    classifier = mr.NeymanPearsonClassifier(
        estimator,
        alpha=alpha,
        missingness={0: phi},
        calibration_size=0.2,
        random_state=0,
    ).fit(X, y)
    display = mr.NPROCDisplay.from_predictions(
        classifier.score_samples(X0),
        classifier.score_samples(Z1[1]),
        weights=weights,
        bound=bound,
        name=name,
        ax=ax,
    )
    curves.append(display.roc)
ax.set_title("Power against the type I error that is certified")
ax.spines[["top", "right"]].set_visible(False)
comparison = mr.evaluation.compare_np_roc(*curves)
print(
    f"M-KLIEP is better at {comparison.a_better.mean():.0%} of the levels, "
    f"boosted trees at {comparison.b_better.mean():.0%}"
)
