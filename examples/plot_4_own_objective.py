"""
An objective of one's own
=========================

The paper's general form is argmin h(E g₁(Z¹), E g₀(Z⁰)). Two functions of the log ratio
and their derivatives are an objective; weights, bases, penalties and solvers come with
it.
"""

# %%
# Take E[r(Z¹)^−a]/a + E[r(Z⁰)^(1−a)]/(1−a) for 0 < a < 1. Pointwise its derivative in r
# is r^(−a−1)(r·p₀ − p₁), so the true ratio is the optimum for every a. a = ½ is the
# squared Hellinger distance, and a → 0 the KL divergence.
#
# With the score s = log r, g₁(s) = exp(−as)/a and g₀(s) = exp((1−a)s)/(1−a). A `Term`
# holds a function and its first two derivatives; h is the sum unless `combine` says
# otherwise.

import matplotlib.pyplot as plt
import numpy as np

import missratio as mr


class PowerObjective(mr.objective.Objective):
    def __init__(self, a):
        self.a = a

    def numerator(self, score):
        g = np.exp(-self.a * score)
        return mr.objective.Term(g / self.a, -g, self.a * g)

    def denominator(self, score):
        b = 1.0 - self.a
        g = np.exp(b * score)
        return mr.objective.Term(g / b, g, b * g)


# %%
# Class 1 is N(1, 1), class 0 is N(0, 1), and four in five values of class 1 above 1 are
# missing. Every choice of a finds the slope, 1, since the weights reach an objective of
# one's own like any other.

rng = np.random.default_rng(0)
n = 4000
phi = mr.StepMissingness(direction=1.0, threshold=1.0, probability=0.8)
X1 = mr.corrupt(rng.normal(1, 1, (n, 1)), phi, rng)
X0 = rng.normal(0, 1, (n, 1))
orders = [0.1, 0.25, 0.5, 0.75, 0.9]


def slopes(X1, X0):
    """KLIEP's slope, and that for every order a."""
    estimators = [
        mr.KLIEP(missingness={1: phi}),
        *(mr.ObjectiveRatio(PowerObjective(a), missingness={1: phi}) for a in orders),
    ]
    return [mr.density_ratio(X1, X0, each).coef_[0] for each in estimators]


clean = slopes(X1, X0)
print("KLIEP     " + "".join(f"a = {a:<6}" for a in orders))
print("".join(f"{slope:<10.3f}" for slope in clean))

# %%
# Why one would want another objective: replace 1 % of class 0 by rows at 4, where the
# ratio is large. KLIEP sees them through exp(s), and a larger a through a smaller power
# of r.

spoilt = X0.copy()
spoilt[: n // 100] = 4.0
contaminated = slopes(X1, spoilt)
print("".join(f"{slope:<10.3f}" for slope in contaminated))

# %%

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
places = [0.0, *orders]
ax.axhline(1.0, color="0.5", linewidth=1)
ax.annotate("true slope", (0.9, 1.0), (0, 4), textcoords="offset points", ha="right")
ax.plot(places, clean, "o-", color="#0072B2", label="class 0 as it is")
ax.plot(places, contaminated, "s--", color="#D55E00", label="1 % of class 0 at 4")
ax.set_xticks(places, ["KLIEP", *(str(a) for a in orders)])
ax.set(
    xlabel="order a of the objective",
    ylabel="fitted slope",
    ylim=(0, 1.2),
    title="A larger order minds stray rows of class 0 less",
)
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
