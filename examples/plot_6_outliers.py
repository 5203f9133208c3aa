"""
Outliers: a small ratio to a reference sample
=============================================

A row is an outlier if the reference sample has few rows like it: if the ratio of the
reference's density to the sample's is small there. Here the reference has lost rows in
one region, and ordinary rows of that region look like outliers unless the reference is
weighted.
"""

# %%
# A machine's vibration and temperature, in a reference period and in use. In use, one
# row in twenty comes from a fault. The reference sensor dropped three in four readings
# at high temperatures, as its manual says: φ is known.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import missratio as mr

rng = np.random.default_rng(0)
phi = mr.StepMissingness(direction=[0.0, 1.0], threshold=0.5, probability=0.75)


def healthy(n):
    angle = rng.uniform(-0.5, 2.6, n)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    return 1.5 * ring + rng.normal(0, 0.25, (n, 2))


reference = mr.corrupt(healthy(2000), phi, random_state=0)
is_fault = rng.random(1000) < 0.05
in_use = np.where(is_fault[:, None], rng.normal(0, 0.4, (1000, 2)), healthy(1000))
print(f"{np.isnan(reference[:, 0]).mean():.0%} of the reference rows are missing.")

# %%
# The reference is the numerator: a small ratio marks what it doesn't know. RuLSIF's
# relative ratio is bounded, so that no row in the reference's tail dominates the fit.
# By default a kernel ratio is one everywhere unless the samples differ beyond chance.
# One row in twenty is too few for that, so ``flat_within=0`` asks for the best fit.

options = {"flat_within": 0, "random_state": 0}
ratios = {
    "weighted by φ": mr.KernelRatio("rulsif", missingness={1: phi}, **options),
    "complete cases": mr.KernelRatio("rulsif", missingness="ignore", **options),
}
scores = {}
for name, estimator in ratios.items():
    ratio = mr.density_ratio(reference, in_use, estimator)
    scores[name] = ratio.predict_ratio(in_use)
    found = roc_auc_score(is_fault, -scores[name])
    worst = np.argsort(scores[name])[: is_fault.sum()]
    print(
        f"{name:15} area under the ROC {found:.3f}; of the {is_fault.sum()} smallest "
        f"ratios, {is_fault[worst].mean():.0%} are faults"
    )

# %%
# Both find the faults, in the middle of the ring. Complete cases also flag the top of
# the ring, where the reference lost its rows.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharey=True)
for ax, (name, score) in zip(axes, scores.items(), strict=True):
    shown = ax.scatter(*in_use.T, c=score, s=9, cmap="viridis", vmin=0, vmax=2)
    ax.scatter(
        *in_use[is_fault].T,
        s=42,
        facecolors="none",
        edgecolors="#D55E00",
        label="fault",
    )
    ax.set(title=name, xlabel="vibration", aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("temperature")
axes[1].legend(frameon=False, loc="lower right")
fig.colorbar(shown, ax=axes, label="relative ratio to the reference")
top = (~is_fault) & (in_use[:, 1] > 1.2)
for name, score in scores.items():
    print(f"{name:15} mean ratio at the top of the ring {score[top].mean():.2f}")
