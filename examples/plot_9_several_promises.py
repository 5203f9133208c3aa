"""
Several classes, and several groups
===================================

The simplest certificate bounds one error. Here two classes are bounded at once, and
then every group.
"""

# %%
# Three diseases. Rows of the first two must not be taken for anything else: at most 10%
# and 15% of them. The third has no bound, and its error is made as small as these
# allow.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.exceptions import NoCertificateError

centres = {"sepsis": (0.0, 0.0), "flu": (3.0, 0.4), "cold": (1.6, 2.8)}


def draw(n, seed):
    """Rows of each disease, n of them."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(c, 1, (n, 2)) for c in centres.values()])
    return X, np.repeat(list(centres), n)


X, y = draw(1200, 0)
classifier = mr.MulticlassNeymanPearsonClassifier(
    LogisticRegression(), alpha={"sepsis": 0.1, "flu": 0.15}, random_state=0
).fit(X, y)
print(classifier.certificate_)

# %%
# On a hundred thousand fresh rows of each disease:

X_new, y_new = draw(100_000, 1)
predicted = classifier.predict(X_new)
for label in centres:
    print(f"{label}: error {np.mean(predicted[y_new == label] != label):.3f}")

# %%
# Tighter bounds leave no room. The error says what there is room for.

strict = mr.MulticlassNeymanPearsonClassifier(
    LogisticRegression(), alpha={"sepsis": 0.05, "flu": 0.05}, random_state=0
)
try:
    strict.fit(X, y)
except NoCertificateError as error:
    print(error)

figure, axes = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
across, up = np.meshgrid(np.linspace(-3, 6, 300), np.linspace(-3, 6, 300))
grid = classifier.predict(np.column_stack([across.ravel(), up.ravel()]))
places = np.searchsorted(classifier.classes_, grid).reshape(across.shape)
axes.contourf(across, up, places, levels=[-0.5, 0.5, 1.5, 2.5], alpha=0.3)
for label, centre in centres.items():
    axes.plot(*centre, "ko")
    axes.annotate(label, centre, xytext=(5, 5), textcoords="offset points")
axes.set_title("bounds of 10% (sepsis) and 15% (flu)")

# %%
# One threshold for all keeps a promise on average over groups, not in each. A threshold
# for each group keeps it in each; the groups share δ.

rng = np.random.default_rng(0)


def patients(n, rng):
    """Rows of two age groups; the old ones look more ill."""
    group = rng.choice(["young", "old"], n, p=[0.7, 0.3])
    ill = rng.integers(0, 2, n)
    rows = rng.normal(size=(n, 2)) + 1.6 * ill[:, None]
    rows[:, 0] += 0.9 * (group == "old")
    return rows, ill, group


table = patients(6000, rng)
own = mr.GroupedNeymanPearsonClassifier(
    LogisticRegression(), alpha=0.1, random_state=0
).fit(*table)
one = mr.NeymanPearsonClassifier(LogisticRegression(), alpha=0.1, random_state=0).fit(
    *table[:2]
)
print(own.certificate_.to_frame())
fresh = patients(200_000, rng)
X_new, y_new, group = fresh
predicted = {
    "one threshold": one.predict(X_new),
    "a threshold for each group": own.predict(X_new, group),
}

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained", sharey=True)
for ax, (title, given) in zip(axes, predicted.items(), strict=True):
    place = np.arange(2)
    for label, name in enumerate(["error", "power"]):
        rows = [(group == g) & (y_new == label) for g in ("old", "young")]
        height = [given[mine].mean() for mine in rows]
        ax.bar(place - 0.2 + 0.4 * label, height, 0.4, label=name)
    ax.axhline(0.1, color="0.3", linestyle="--", linewidth=1)
    ax.set_xticks(place, ["old", "young"])
    ax.set_title(title)
axes[0].set_ylim(0, 1.15)
axes[0].legend(frameon=False, ncols=2, loc="upper right")
