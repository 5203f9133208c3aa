"""
Looking values up: what each of them buys
=========================================

Heart traces of 2,126 unborn children, judged by obstetricians. Values of healthy
children are missing, nobody knows why, and a nurse can find some of them in the paper
files. How many should she look up, and what does the certificate then assume?
"""

# %%
# The data are the cardiotocograms of Ayres-de-Campos and others (2000), which
# `missratio data fetch ctg` finds. Where they are not at hand, scikit-learn's breast
# cancer table takes their place, so that the page can be built anywhere. Values are
# lost by a rule that the analysis below never sees.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import missratio as mr
from missratio.datasets import load_ctg

try:
    data = load_ctg()
    Z = data.data[:, [0, 1, 4, 5, 8]]
    y = np.where(data.target == 1, "normal", "suspect")
except (FileNotFoundError, ImportError):
    data = load_breast_cancer()
    Z = data.data[:, :5]
    y = np.where(data.target == 1, "normal", "suspect")
print(f"{(y == 'normal').sum()} normal and {(y == 'suspect').sum()} suspect rows")

# %%
# Half of the rows are set aside complete, to measure on. In the other half a normal
# child's first value gets lost, likelier where it is high *and* the last column is low:
# that is no logistic function of the value itself, so a model of φ would be wrong. The
# loss is strong on purpose: a milder one, tried before, put the error of the complete
# rows just at α.

rng = np.random.default_rng(0)
past, fresh, y_past, y_fresh = train_test_split(
    Z, y, test_size=0.5, stratify=y, random_state=0
)
units = (past - past.mean(axis=0)) / past.std(axis=0)
odds = np.exp(-0.8 + 1.6 * units[:, 0] - 1.2 * units[:, -1])
lost = (y_past == "normal") & (rng.uniform(size=len(past)) < odds / (1 + odds))
X = past.copy()
X[lost, 0] = np.nan
print(f"{lost.sum()} of {(y_past == 'normal').sum()} normal rows miss a value")

# %%
# `plan_queries` draws rows at random, and `fill` puts what was found into the table,
# with the probability by which each row came to be in it. That probability is known by
# design: the certificate assumes nothing about why values were missing.

alpha, n_repeats = 0.1, 8
budgets = [25, 50, 100, 150, 200]
power, error = np.zeros((2, len(budgets), n_repeats))
for i, budget in enumerate(budgets):
    for k in range(n_repeats):
        plan = mr.plan_queries(
            X, y_past, budget=budget, goal="certificate", controlled_class="normal",
            alpha=alpha, random_state=k,
        )  # fmt: skip
        answers = plan.to_frame()
        answers["value"] = past[plan.rows, plan.columns]
        revealed = mr.QueryPlan.read(answers, X, y_past)
        filled, inclusion = revealed.fill(X)
        classifier = mr.NeymanPearsonClassifier(
            mr.KLIEP(l2=0.01), alpha=alpha, controlled_class="normal",
            on_infeasible="reject_all", random_state=k,
        ).fit(filled, y_past, inclusion=inclusion)  # fmt: skip
        called = classifier.predict(fresh) == "suspect"
        power[i, k] = called[y_fresh == "suspect"].mean()
        error[i, k] = called[y_fresh == "normal"].mean()
    print(
        f"{budget:3} look-ups: power {power[i].mean():.2f}, error {error[i].mean():.3f}"
    )

# %%
# For comparison: complete rows taken for all, and every value known.

marks = {}
for name, rows, table in (
    ("complete rows only", ~lost, X),
    ("nothing missing", np.ones(len(X), dtype=bool), past),
):
    found = []
    for k in range(n_repeats):
        classifier = mr.NeymanPearsonClassifier(
            mr.KLIEP(l2=0.01), alpha=alpha, controlled_class="normal", random_state=k
        ).fit(table[rows], y_past[rows])
        called = classifier.predict(fresh) == "suspect"
        found.append(
            [called[y_fresh == label].mean() for label in ("suspect", "normal")]
        )
    marks[name] = np.mean(found, axis=0)
    print(f"{name}: power {marks[name][0]:.2f}, error {marks[name][1]:.3f}")

# %%
# With few look-ups little can be certified, and sometimes nothing: the power is then 0.
# It rises steeply and levels off where nothing missing would be, with the error below α
# throughout. Complete rows alone find more, because they break the promise.

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharex=True)
styles = {"complete rows only": ("#D55E00", ":"), "nothing missing": ("#009E73", "--")}
for axis, values, place in zip(axes, (power, error), (0, 1), strict=True):
    axis.plot(budgets, values, "o", color="#0072B2", alpha=0.35, ms=4)
    axis.plot(budgets, values.mean(axis=1), "-", color="#0072B2", label="look-ups")
    for name, (colour, line) in styles.items():
        axis.axhline(marks[name][place], color=colour, linestyle=line, label=name)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set(xlabel="values looked up")
axes[0].set(ylabel="suspect children found", ylim=(-0.02, 1))
axes[1].axhline(alpha, color="black", linewidth=1)
axes[1].annotate("α", (budgets[0], alpha), xytext=(0, 4), textcoords="offset points")
axes[1].set(ylabel="normal children called suspect", ylim=(0, None))
for axis in axes:
    axis.yaxis.set_major_formatter("{x:.0%}")
axes[0].legend(frameon=False, loc="lower right")
