"""The imputer as a transformer: labels, kinds of tables, refusals."""

import numpy as np
import pytest
from optional_packages import optional
from sklearn.base import clone

import missratio as mr
from missratio.exceptions import WeightConcentrationWarning

pd = optional("pandas")
pl = optional("polars")

PHI = mr.LogisticMissingness(0.0, [1.0, -1.0])
ROWWISE = mr.StepMissingness([1.0, 0.0], 0.0, 0.5)


def two_classes(n=300, seed=0):
    """Class 1 loses values; class 0 lies elsewhere."""
    rng = np.random.default_rng(seed)
    Z = np.concatenate([rng.normal(-9, 1, (n, 2)), rng.normal(0, 1, (n, 2))])
    X, y = Z.copy(), np.repeat([0, 1], n)
    X[y == 1] = mr.corrupt(Z[y == 1], PHI, rng)
    return X, y


def test_each_class_is_a_population_of_its_own_and_what_is_observed_stays():
    X, y = two_classes()
    before = X.copy()
    imputer = mr.TiltedImputer({1: PHI}, n_imputations=2, random_state=0)
    first, second = tables = imputer.fit_impute(X, y)
    means = imputer.convergence_[1]["0"]
    assert means.shape == (2, 10)
    assert means[1, -1] == pytest.approx(second[np.isnan(X[:, 0]), 0].mean())
    for table in tables:
        assert not np.isnan(table).any()
        np.testing.assert_array_equal(table[~np.isnan(X)], X[~np.isnan(X)])
        assert np.isin(table[y == 1], X[y == 1]).all()
    assert (first != second).any()
    np.testing.assert_array_equal(X, before)
    alone = clone(imputer).set_params(missingness=PHI).fit_transform(X[y == 1])
    np.testing.assert_array_equal(first[y == 1], alone)
    # The same seed gives the same tables; complete rows pass through.
    np.testing.assert_array_equal(tables, clone(imputer).fit_impute(X, y))
    rows = np.random.default_rng(1).normal(size=(5, 2))
    np.testing.assert_array_equal(imputer.transform(rows), rows)
    assert len(imputer.impute(rows)) == 2


def test_rows_without_labels_are_refused_unless_a_class_is_named():
    X, y = two_classes()
    row = np.array([[np.nan, 0.5], [0.1, 0.2]])
    with pytest.raises(ValueError, match="depends on the class") as error:
        mr.TiltedImputer({1: PHI}, random_state=0).fit(X, y).transform(row)
    assert "unlabelled" in str(error.value)
    named = mr.TiltedImputer({1: PHI}, n_imputations=2, unlabelled=1, random_state=0)
    completed = named.fit(X, y).transform(row)
    assert -5 < completed[0, 0] < 5
    np.testing.assert_array_equal(completed[1], row[1])
    np.testing.assert_array_equal(named.transform(row), completed)
    np.testing.assert_array_equal(named.impute(row)[0], completed)
    complete = mr.TiltedImputer({1: PHI}, unlabelled=0, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"of class 0 that were fitted had none"):
        complete.transform([[np.nan, 0.0]])


def test_new_rows_have_the_law_of_the_old(skewed):
    (_, old, phi), (Z, new, _) = skewed(6000, 0), skewed(6000, 1)
    completed = mr.TiltedImputer(phi, random_state=0).fit(old).transform(new)
    # Rows of which the same is known are given the same: their law is one draw's.
    alone = ~np.isnan(new[:, :2]).all(axis=1)
    for j in range(3):
        lost = np.isnan(new[:, j]) & alone
        gap = completed[lost, j].mean() - Z[lost, j].mean()
        assert abs(gap) < 0.12 * Z[lost, j].std()
    for a, b in ((0, 1), (0, 2)):
        ours, truth = (
            np.corrcoef(np.argsort(np.argsort(each[alone][:, [a, b]].T)))[0, 1]
            for each in (completed, Z)
        )
        assert ours == pytest.approx(truth, abs=0.08)


def mixed(n=3000, seed=0):
    """A number and a category that depends on it; "high" goes missing most."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    word = np.where(z + rng.normal(size=n) > 0, "high", "low").astype(object)
    chance = np.where(word == "high", 0.7, 0.2)
    lost = rng.random(n) < chance
    lossy = word.copy()
    lossy[lost] = None
    z_lossy = np.where(rng.random(n) < 0.3, np.nan, z)
    return z, word, z_lossy, lossy, lost


def by_category(X):
    # Places among the sorted categories: "high" is 0 and "low" is 1.
    return np.column_stack([np.full(len(X), 0.3), np.where(X[:, 1] == 0, 0.7, 0.2)])


CATEGORY = mr.FunctionMissingness(by_category, rowwise=False)


@pytest.mark.parametrize("kind", ["object", "category", "polars"])
def test_categories_have_the_law_of_those_that_went_missing(kind):
    z, word, z_lossy, lossy, lost = mixed()
    if kind == "polars":
        X = pl.DataFrame({"z": z_lossy, "word": lossy.tolist()})
    else:
        X = pd.DataFrame({"z": z_lossy, "word": lossy}).astype({"word": kind})
    imputer = mr.TiltedImputer(CATEGORY, random_state=0)
    completed = imputer.fit_transform(X)
    assert type(completed) is type(X)
    if kind == "category":
        assert completed["word"].dtype == X["word"].dtype
    values = np.asarray(completed)
    assert set(values[lost, 1]) == {"high", "low"}
    ours, truth = values[lost, 1] == "high", word[lost] == "high"
    assert ours.mean() == pytest.approx(truth.mean(), abs=0.08)
    numbers = values[lost, 0].astype(float)
    assert numbers[ours].mean() == pytest.approx(z[lost][truth].mean(), abs=0.15)
    assert numbers[~ours].mean() == pytest.approx(z[lost][~truth].mean(), abs=0.2)


NEVER = pd.DataFrame({"a": ["x", 1, None], "b": [0.0, 1.0, 2.0]})
WORDS = pd.DataFrame({"a": ["x", "y", None] * 20, "b": np.arange(60.0)})
BEYOND = mr.StepMissingness(1.0, 99, 0.5, rowwise=False)


def given(**options):
    return lambda X, y: mr.TiltedImputer(**{"missingness": {1: PHI}, **options}).fit(
        X, y
    )


def another_word(X, y):
    imputer = mr.TiltedImputer("ignore").fit(WORDS)
    imputer.transform(pd.DataFrame({"a": ["z"], "b": [1.0]}))


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (given(n_imputations=0), "n_imputations == 0, must be >= 1"),
        (given(categorical_features=["c"]), "names 'c', and X has '0', '1'"),
        (given(missingness={1: ROWWISE}), "loses whole rows.*sample_weight"),
        (given(missingness={7: PHI}), "class 7"),
        (given(missingness=None), r"Class 1 has missing values.*ignore"),
        (given(missingness={0: PHI}), r"Class 1 has missing values.*\{1: model\}"),
        (given(missingness={1: BEYOND}), "none of the values that were observed can"),
        (given(missingness=3), "missingness must be"),
        (lambda X, y: given()(X, None), "y must say"),
        (lambda X, y: given()(np.where(y == 1, np.nan, X.T).T, y),
         "Class 1: column '0' is never observed"),
        (lambda X, y: mr.TiltedImputer("ignore").fit(NEVER), "of one type"),
        (another_word, "category 'z'"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(fit, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(*two_classes())


def test_few_entries_that_stand_for_many_are_warned_of():
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[:100, 0] = np.nan
    X[-1, 0] = 9.0
    phi = mr.StepMissingness([1.0, 0.0], 8.0, [0.999, 0.0], rowwise=False)
    with pytest.warns(WeightConcentrationWarning, match="column '0'") as caught:
        mr.TiltedImputer(phi, random_state=0).fit(X)
    assert caught[0].filename == __file__
