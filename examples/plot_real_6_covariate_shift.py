"""
Covariate shift: hours of sun, carried from Melbourne to Perth
==============================================================

Hours of sunshine were measured at Melbourne's airport, and are wanted for an air base
near Perth, where the sky is clearer. How the sun depends on cloud and humidity is much
the same in both places, but how often each sky occurs is not. A density ratio between
the places corrects for that, if it is not misled by the gaps in the air base's records.
"""

# %%
# Nothing is lost on purpose: the gaps in the cloud records of the air base, Pearce, are
# real, and most of them are on clear days. The data are daily observations of the
# Australian Bureau of Meteorology, which `missratio data` lists as `weather`. Sunshine
# for Pearce is in the table too (it is Perth airport's, 30 km away), but only the last
# step looks at it. Where the file is not at hand, a made-up table of the same shape
# takes its place, so that this page can be built anywhere.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

import missratio as mr
from missratio.datasets import fetch

SKY = ["cloud", "humidity"]


def made_up_place(clear, rng, n=1000):
    sky = rng.beta(0.7, clear, n)
    cloud = np.round(8 * np.clip(sky + rng.normal(0, 0.1, n), 0, 1))
    humidity = 30 + 40 * sky + rng.normal(0, 8, n)
    sun = np.clip(12 * (1 - sky**2) + rng.normal(0, 1, n), 0, 14)
    return pd.DataFrame({"cloud": cloud, "humidity": humidity, "sun": sun})


try:
    days = pd.read_csv(fetch("weather"), na_values="NA", parse_dates=["Date"])
    days = days.set_index("Date").rename(
        columns={"Cloud3pm": "cloud", "Humidity3pm": "humidity", "Sunshine": "sun"}
    )
    places = days.groupby("Location")
    melbourne, pearce, perth = (
        places.get_group(name).loc["2014":"2016", [*SKY, "sun"]]
        for name in ("MelbourneAirport", "PearceRAAF", "PerthAirport")
    )
except (FileNotFoundError, ImportError):
    rng = np.random.default_rng(0)
    melbourne, pearce = made_up_place(0.7, rng), made_up_place(1.4, rng)
    perth = pearce.copy()
    gap = rng.uniform(size=len(pearce)) < 1 / (1 + np.exp(pearce["cloud"] / 2 - 0.5))
    pearce["cloud"] = pearce["cloud"].mask(gap)

# The years are 2014 to 2016: over all years the check of φ below fails (p = 5.5e-7), as
# the way in which the air base leaves out cloud seems to have changed.
melbourne = melbourne.dropna()
perth = perth.dropna().add_prefix("airport's ")
pearce = pearce.dropna(subset=["humidity", "sun"]).join(perth, how="inner")
gap = pearce["cloud"].isna()
print(f"{len(melbourne)} days with sunshine at Melbourne's airport")
print(
    f"{len(pearce)} days at Pearce, {gap.mean():.0%} of them without an entry for cloud"
)

# %%
# φ is the probability that Pearce has no entry, given the cloud that it would have
# noted. It is learned from the table: the cloud and the sun at Perth's airport, and the
# humidity, tell what the gaps hide. `learn_missingness` checks what this assumes.

learned = mr.learn_missingness(pearce[[*SKY, "airport's cloud", "airport's sun"]])
for check in learned.checks:
    print(check.sentence)
phi = mr.LogisticMissingness.from_columns(
    {"cloud": (learned.intercept[0], learned.coef[0])}
)

# %%
# Three sets of weights for Melbourne's days: none; the ratio of Pearce's density to
# Melbourne's as if days with an entry were all days; and the ratio that knows φ. The
# ratio is log-linear in cloud, humidity, their squares and their product.

weights = {"unweighted": np.ones(len(melbourne))}
for name, missingness in (("ratio, entries only", "ignore"), ("ratio, φ", {1: phi})):
    ratio = mr.density_ratio(
        pearce[SKY],
        melbourne[SKY],
        mr.KLIEP(mr.PolynomialBasis(degree=2)),
        missingness=missingness,
    )
    weights[name] = ratio.importance_weights(melbourne[SKY])

# %%
# What each of them says of the sun at Pearce: its mean, and how far a linear regression
# on cloud and humidity is off there. Where Pearce has no cloud to predict from, the
# regression gets the airport's.

sky = pearce[SKY].fillna({"cloud": pearce["airport's cloud"]})
means, lines = {}, {}
for name, weight in weights.items():
    line = LinearRegression().fit(melbourne[SKY], melbourne["sun"], weight)
    error = np.sqrt(np.mean((line.predict(sky) - pearce["sun"]) ** 2))
    means[name] = np.average(melbourne["sun"], weights=weight)
    effective = weight.sum() ** 2 / np.sum(weight**2)
    print(
        f"{name:19} mean {means[name]:.2f} hours; regression off by {error:.2f}; "
        f"effective sample size {effective:.0f}"
    )
truth = pearce["sun"].mean()
print(f"{'Pearce':19} mean {truth:.2f} hours")

# %%
# The mean that knows φ is closest to the truth. The regression gains nothing: its line
# is about the same wherever it is fitted, so its error does not depend on the weights.
# Weights for covariate shift help where the best model differs between the places, and
# they always cost effective rows.

fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
colours = dict(zip(weights, ("#999999", "#D55E00", "#0072B2"), strict=True))
edges = np.arange(-0.5, 9)
for name, colour in colours.items():
    left.hist(melbourne["cloud"], edges, weights=weights[name], density=True,
              histtype="step", linewidth=2, color=colour, label=name)  # fmt: skip
left.plot(range(9), [np.mean(sky["cloud"].round() == k) for k in range(9)], "k.",
          label="Pearce, gaps filled\nfrom the airport")  # fmt: skip
left.set(xlabel="eighths of the sky covered at 3 p.m.", ylabel="share of days")
left.yaxis.set_major_formatter("{x:.0%}")
left.set_ylim(0, 0.5)
left.legend(frameon=False, loc="upper center")
right.barh(list(means), list(means.values()), color=list(colours.values()))
right.axvline(truth, color="black")
right.annotate("truth", (truth, 1.02), xycoords=("data", "axes fraction"), ha="center")
right.invert_yaxis()
right.set(xlabel="mean hours of sun a day at Pearce", xlim=(0, 1.1 * truth))
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
