"""What the page "Reproducing the paper" says besides its numbers."""

INTRODUCTION = """\
Each experiment leaves a Parquet table of every run, a figure as PNG and SVG, and a
section in a summary that says for each point whether our interval and the published one
overlap. The same seed gives the same tables on any number of processes, and a run that
was killed continues where it stopped. Published values are the authors' results, for
comparison only: none of them enters a computation."""

METHOD = """\
Class 1 is the numerator, on which power is measured; class 0 is the denominator, whose
error is controlled. Class 1 loses values and class 0 is complete. The basis is f(z) =
z, the binomial rule (the paper's Algorithm 2) chooses thresholds, and all methods share
the draws, splits and losses of a run.

- **Power of simulated classifiers.** The paper counts 1,000,000 fresh points in each
  run. Here the power of a linear score under a mixture of normal laws is computed in
  closed form. The power of a true ratio that is not linear comes from one set of evenly
  spread (Sobol) points that all runs share. The mean over runs is the same, without the
  counting error; intervals are still over runs.
- **Real data.** Each run calls the library as a user would: `corrupt` loses values,
  `learn_missingness` learns φ, `NaiveBayesRatio` with `KLIEP` fits the ratio, and the
  binomial rule of `NeymanPearsonClassifier` chooses the threshold. Naive Bayes reads
  each column by itself, which saves time in two ways without any approximation. On CTG
  one fit takes the columns of several runs side by side. On the weather each column of
  a class is sorted by itself, and equal rows become one row with a sample weight
  (100,316 rows become about 3,200).
- **Iterative imputation** is scikit-learn's `IterativeImputer` with its defaults, on
  the training rows of class 1. On the weather it makes as many runs as fit into a
  quarter of an hour for each of the two experiments; the tables say how many. A table
  without this column comes from a run that left it out with `--methods`."""

DISAGREE = """\
To reproduce the published curves one has to deviate from the paper's text in these
places. The variant `published` follows the curves."""

DISAGREEMENTS = [
    [
        "the class that loses values",
        "main text: class 0; appendix: class 0 and class 1, by turns",
        "class 1",
    ],
    ["`msd_5dim`, means", "p1 at 0.1·1, p0 at 0", "p1 at 0, p0 at 0.1·1"],
    ["`diff_variance`, rows are lost where", "x₁ > 0", "x₂ > 0"],
    ["`misspecification`, mean of p0", "(1, 0)", "(1, 1)"],
    ["`misspecification`, rows are lost where", "x₁ > 0", "x₁ < 0"],
    ["`misspecification`, rows of a sample", "100", "500"],
    ["a score at the threshold", "class 0 (Algorithm 2: >)", "class 1 (≥)"],
    [
        "CTG, rows",
        "2126 in the main text, 2129 in the appendix",
        "2129: three footer rows of the sheet count as class 0",
    ],
    ["φ on real data", "main text: 1 + exp{…}; appendix: its inverse", "the inverse"],
    ["experiment 2, slope of φ", "σⱼ", "1/σⱼ, as in experiment 1"],
    ["experiment 2, shares missing", "0.1 to 0.9", "0 to 0.9"],
    ["experiment 2 on Fire and Weather, queries", "50", "10"],
    ["order of a run", "values are normalised, then lost", "lost, then normalised"],
    [
        "Weather, NaN of the data",
        "simple mean imputation",
        "the lower bound of the trimmed range",
    ],
    ["Fire, NC2.5", "capped at 5", "overwritten below 5 by the capped PM2.5"],
]

CORRECTED = """\
`missratio reproduce --variant corrected` mends three things:

- **data**: the CTG sheet's footer rows are dropped; NaN of the weather is filled by
  means of the training rows of both classes, and not by the lower bound of a column's
  range; Fire's NC2.5 is left alone. (Means computed for each split would give the label
  away, because splits are made by class.)
- **learning**: φ is learned with Firth's penalty. The published runs use maximum
  likelihood, with a slope of ±100 if the looked-up and the observed values are
  separated.
- **threshold**: a row must score strictly above the threshold; with tied scores the
  certificate is proved only for that.

Simulated experiments are the same in both variants: their scores are continuous. The
table shows what each correction does by itself, and all of them together:"""

NORMALISATION = """\
The printed objective divides sums of weights by n (Horvitz and Thompson), and that is
what both variants do. The library's default divides by the sum of the weights (Hájek).
The published curve is that of the printed objective. M-KLIEP in `np_power`, mean of
1000 runs:"""

UNBOUNDED = """\
A column's fit has no finite optimum where the mean of class 1 lies outside the range of
class 0's training values; its coefficient then grows without bound. On CTG this happens
most often to complete cases. The text says that fits were made by gradient descent,
which stops at some point, but not at which. In both variants here such a column gets
±100 per standard deviation, so large that no other column matters: the limit. The
published curve of CC-KLIEP in `ctg_vary_alpha` agrees with the limit. The one in
`ctg_vary_missing` lies above it, nearer to the result of stopping earlier:"""

FIRE = """\
Only account holders can download the Fire file, and it was not available. Its
experiments follow the documented columns and were tested on a small made-up table only;
nothing is claimed for them."""
