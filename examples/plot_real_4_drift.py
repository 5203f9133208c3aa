"""
Drift: has the sky over an air base become cloudier?
====================================================

At Pearce, an air base near Perth, an observer notes how many eighths of the sky are
covered at three in the afternoon. Many days have no entry, and most of those are clear.
Over the years the gaps grew. The entries that are left say that the sky has become much
cloudier. Most of that change comes from the gaps.
"""

# %%
# Nothing is lost on purpose here: the gaps are real, and nobody wrote down why they are
# there. The data are daily observations of the Australian Bureau of Meteorology, which
# `missratio data` lists as `weather`. Perth airport, 30 km away, has an entry for cloud
# on every day. We use it in two ways: its columns help to learn φ, the probability that
# an entry is missing, and at the end it serves as a check.
#
# Where the file is not at hand, a made-up table of the same shape takes its place, so
# that this page can be built anywhere.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import missratio as mr
from missratio.datasets import fetch


def made_up_days():
    rng = np.random.default_rng(0)
    dates = pd.date_range("2010-01-01", "2016-12-31")
    sky = rng.beta(0.7, 0.9, len(dates))
    noise = rng.normal(0, 0.1, (3, len(dates)))
    pearce, airport = np.clip(sky + noise[:2], 0, 1)
    lost = 1 / (1 + np.exp(-(0.15 * (dates.year - 2010) - 3.5 * pearce)))
    humidity, sunshine = 30 + 40 * (sky + noise[2]), 12 - 11 * sky
    recorded = np.where(rng.uniform(size=len(dates)) < lost, np.nan, 8 * pearce)
    columns = recorded.round(), humidity, (8 * airport).round(), sunshine
    return pd.DataFrame(np.column_stack(columns), dates, NAMES)


NAMES = ["cloud", "humidity", "airport's cloud", "airport's sunshine"]
try:
    days = pd.read_csv(fetch("weather"), na_values="NA", parse_dates=["Date"])
    places = days.set_index("Date").groupby("Location")
    pearce = places.get_group("PearceRAAF")[["Cloud3pm", "Humidity3pm"]]
    airport = places.get_group("PerthAirport")[["Cloud3pm", "Sunshine"]]
    table = pd.concat([pearce, airport], axis=1, join="inner").set_axis(NAMES, axis=1)
except (FileNotFoundError, ImportError):
    table = made_up_days()

# %%
# Two periods of three whole years. Neighbouring days resemble each other, and the test
# below takes rows for independent, so we keep every third day. A few days on which
# another column is missing are left out. With every day of 2010–12 the check of φ below
# would fail (p = 3e-5): a logistic φ is close to the truth here, and not the truth.

table = table.iloc[::3].dropna(subset=NAMES[1:])
periods = {"2010–12": table["2010":"2012"], "2014–16": table["2014":"2016"]}
for name, rows in periods.items():
    lost = rows["cloud"].isna()
    print(f"{name}: {len(rows)} days, {lost.mean():.0%} without an entry for cloud")
    for kind, some in (
        ("clear days", rows["airport's cloud"] <= 1),
        ("other days", rows["airport's cloud"] > 1),
        ("Fridays to Sundays", rows.index.day_of_week >= 4),
        ("Mondays to Thursdays", rows.index.day_of_week < 4),
    ):
        print(f"   {kind:20} {lost[some].mean():.0%}")

# %%
# There are two reasons for a gap: a clear sky, and an observer who is off duty. The
# second does no harm if it has nothing to do with the weather. φ, the probability of a
# gap given the cloud, is learned for each period from the other columns. That works if
# a gap depends on the cloud and, given the cloud, not on those columns.
# `learn_missingness` tests this, and the logistic form too.

phi = {name: mr.learn_missingness(rows) for name, rows in periods.items()}
for name, model in phi.items():
    slope, error = model.coef[0], model.standard_errors[0, 1]
    print(f"{name}: log-odds of a gap change by {slope:.2f} ± {error:.2f} an eighth")
    for check in model.checks:
        print(f"   {check.sentence}")

# %%
# Has the law of cloud and humidity changed? For comparison, the same test with the
# airport's cloud, which is complete, in the place of Pearce's.

then, now = periods.values()
own, complete = ["cloud", "humidity"], ["airport's cloud", "humidity"]
reasons = {
    k: mr.LogisticMissingness.from_columns({"cloud": (fit.intercept[0], fit.coef[0])})
    for k, fit in enumerate(phi.values())
}
for name, columns, missingness in (
    ("days with an entry", own, "ignore"),
    ("weighted", own, reasons),
    ("airport, all days", complete, None),
):
    test = mr.ratio_test(
        now[columns], then[columns], missingness=missingness, random_state=0
    )
    print(f"{name:18} p = {test.pvalue:.3f} by {test.method}")

# %%
# All three tests reject: something did change, at the airport too, where nothing is
# missing. So the question is not whether but how far.
#
# The mean cloud of each period: over the days with an entry, over the same days
# weighted by 1/(1 − φ), and at the airport over all days. The intervals in the figure
# below cover 95%. That of the weighted mean counts φ as known, so it is too short.

means = {"days with an entry": [], "weighted": [], "airport, all days": []}
for rows, model in zip(periods.values(), phi.values(), strict=True):
    seen = rows["cloud"].notna()
    cloud = rows.loc[seen, "cloud"].to_numpy()
    weight = 1 / (1 - model.missing_probability(rows[seen])[:, 0])
    for name, values, weights in (
        ("days with an entry", cloud, np.ones(len(cloud))),
        ("weighted", cloud, weight),
        ("airport, all days", rows["airport's cloud"].to_numpy(), np.ones(len(rows))),
    ):
        mean = np.average(values, weights=weights)
        error = np.sqrt(np.sum((weights * (values - mean)) ** 2)) / weights.sum()
        means[name].append((mean, 1.96 * error))
for name, ((before, _), (after, _)) in means.items():
    change = after - before
    print(f"{name:18} {before:.2f} then, {after:.2f} later: {change:+.2f} eighths")

# %%
# Left: how often Pearce has no entry, by the airport's cloud. Right: the mean cloud. By
# the entries it rises by 0.86 eighths, weighted by 0.20, and at the airport by 0.14.

fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
groups = [(0, 0), (1, 1), (2, 3), (4, 6), (7, 8)]
labels = ["0", "1", "2–3", "4–6", "7–8"]
shades = {"2010–12": "#56B4E9", "2014–16": "#0072B2"}
for shift, (name, rows) in zip((-0.08, 0.08), periods.items(), strict=True):
    share, error = [], []
    for low, high in groups:
        lost = rows.loc[rows["airport's cloud"].between(low, high), "cloud"].isna()
        share.append(lost.mean())
        error.append(1.96 * np.sqrt(lost.mean() * (1 - lost.mean()) / len(lost)))
    left.errorbar(np.arange(5) + shift, share, error, fmt="o-", color=shades[name],
                  capsize=3, label=name)  # fmt: skip
left.set(xticks=range(5), xticklabels=labels, ylim=(0, 1),
         xlabel="eighths of the sky covered at the airport",
         ylabel="days without an entry at Pearce")  # fmt: skip
left.yaxis.set_major_formatter("{x:.0%}")
colours = {
    "days with an entry": "#D55E00",
    "weighted": "#0072B2",
    "airport, all days": "0.4",
}
for shift, (name, found) in zip((-0.06, 0.0, 0.06), means.items(), strict=True):
    mean, error = np.transpose(found)
    right.errorbar(np.arange(2) + shift, mean, error, fmt="o-", color=colours[name],
                   capsize=3, label=name)  # fmt: skip
right.set(xticks=[0, 1], xticklabels=list(periods), xlim=(-0.3, 1.3),
          ylabel="mean cloud, in eighths")  # fmt: skip
for axis in (left, right):
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
