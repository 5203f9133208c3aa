"""
Rejected applicants: an insurer, or a bank
==========================================

Rejected applicants are missing from the records, and they are not like the others. A
rule learned from accepted applicants alone rejects more good applicants than it claims.
If the chance of acceptance was logged, weights correct this.
"""

# %%
# The rows are real: scikit-learn's 442 diabetes patients (Efron, Hastie, Johnstone and
# Tibshirani, 2004), with their age, body mass index, blood pressure and blood values,
# and how far the disease went in a year. The story is ours: these are applicants for an
# insurance, "costly" where the disease went furthest in the upper third. Read "costly"
# as "defaults", and it is a bank.
#
# The insurer accepts by an old score, body mass index and blood pressure, with a chance
# that it logs. It has to delete the details of rejected applicants. Years later it is
# known who became costly, so their labels are there and their rows are blank.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import missratio as mr

table = load_diabetes(as_frame=True)
columns = ["bmi", "bp", "s5", "s3", "age"]
Z = StandardScaler().fit_transform(table.data[columns])
y = np.where(table.target > np.quantile(table.target, 2 / 3), "costly", "cheap")
old_score = [1.1, 0.6, 0.0, 0.0, 0.0]
phi = mr.LogisticMissingness(intercept=-0.6, coef=old_score, rowwise=True)
rejected = phi.missing_probability(Z)
for label in ("cheap", "costly"):
    print(f"{rejected[y == label].mean():.0%} of the {label} applicants were rejected")

# %%
# The new rule may reject at most three in ten of the cheap applicants. A hundred times,
# a quarter of the applicants are set aside, the old score rejects some of the others,
# and the new rule is fitted and calibrated: on the accepted alone, and with weights.

alpha = 0.3
errors = {"accepted only": [], "weighted": []}
powers = {"accepted only": [], "weighted": []}
for seed in range(100):
    past, fresh, y_past, y_fresh = train_test_split(
        Z, y, test_size=0.25, stratify=y, random_state=seed
    )
    X = mr.corrupt(past, phi, random_state=seed)
    accepted = ~np.isnan(X).any(axis=1)
    everyone = np.ones(len(X), dtype=bool)
    for name, rows, model in (
        ("accepted only", accepted, None),
        ("weighted", everyone, {"cheap": phi, "costly": phi}),
    ):
        classifier = mr.NeymanPearsonClassifier(
            make_pipeline(StandardScaler(), LogisticRegression()),
            alpha=alpha, delta=0.1, missingness=model, controlled_class="cheap",
            on_infeasible="reject_all", random_state=seed,
        ).fit(X[rows], y_past[rows])  # fmt: skip
        called = classifier.predict(fresh) == "costly"
        errors[name].append(called[y_fresh == "cheap"].mean())
        powers[name].append(called[y_fresh == "costly"].mean())

for name in errors:
    print(
        f"{name:14} rejects {np.mean(errors[name]):.1%} of the cheap applicants, "
        f"and {np.mean(powers[name]):.1%} of the costly ones"
    )

# %%
# Among accepted applicants high scores are rare, so a threshold that lets few of *them*
# through rejects far more of those who apply.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
colours = {"accepted only": "#D55E00", "weighted": "#0072B2"}
places = np.random.default_rng(0).uniform(-0.15, 0.15, 100)
for place, (name, colour) in enumerate(colours.items()):
    left.plot(errors[name], place + places, "o", color=colour, alpha=0.35, ms=4)
    left.plot(np.mean(errors[name]), place, "D", color=colour, mec="black", ms=8)
left.axvline(alpha, color="black", linewidth=1)
left.annotate("α", (alpha, 0.98), xytext=(4, 0), textcoords="offset points",
              xycoords=("data", "axes fraction"), va="top")  # fmt: skip
left.set(yticks=[0, 1], yticklabels=list(colours), ylim=(-0.6, 1.6),
         xlabel="cheap applicants rejected (diamond: mean)")  # fmt: skip
left.xaxis.set_major_formatter("{x:.0%}")
score = Z @ np.array(old_score)
bins = np.linspace(score.min(), score.max(), 30)
right.hist(score, bins, color="#BBBBBB", label="applied")
right.hist(score, bins, weights=1 - rejected, histtype="step", color="#D55E00",
           linewidth=2, label="accepted, on average")  # fmt: skip
right.set(xlabel="old score", ylabel="applicants")
right.legend(frameon=False)
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
