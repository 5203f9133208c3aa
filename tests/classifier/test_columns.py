"""The columns that a certificate can afford."""

import pickle

import numpy as np
import pytest
from classifiers import certified
from data import corrupted
from optional_packages import optional
from sklearn.ensemble import HistGradientBoostingClassifier

import missratio as mr

pd = optional("pandas")


def _rising(X):
    return 0.4 / (1.0 + np.exp(-X))


def wide(share=0.2, seed=0, n=4000, d=30):
    """Equicorrelated columns; class 0 loses a share of each, mostly high values."""
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.full((d, d), 0.5) + 0.5 * np.eye(d))
    shift = root @ root.T @ rng.normal(0.0, 2.6 / np.sqrt(d), d)
    Z, y = rng.normal(size=(2 * n, d)) @ root.T, np.repeat([0, 1], n)
    phi = mr.LogisticMissingness(np.full(d, {0.1: -2.4, 0.2: -1.55}[share]), [0.7] * d)
    X = Z + shift * y[:, None]
    X[y == 0] = mr.corrupt(X[y == 0], phi, random_state=seed)
    fresh = rng.normal(size=(20_000, d)) @ root.T
    return X, y, phi, fresh, fresh + shift


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_few_columns_have_power_where_all_have_none(share):
    X, y, phi, controlled, other = wide(share)
    options = {"alpha": 0.1, "delta": 0.05, "missingness": {0: phi}}
    model = certified(mr.FDivergenceRatio("js"), columns="auto", **options).fit(X, y)
    assert np.isnan(X[y == 0]).mean() == pytest.approx(share, abs=0.02)
    assert (model.predict(other) == 1).mean() > 0.5
    assert (model.predict(controlled) == 1).mean() <= 0.1
    used = model.columns_
    assert 0 < len(used) < 20
    assert model.certificate_.columns == tuple(used.tolist())
    assert f"It uses {len(used)} column(s) alone" in str(model.certificate_)
    complete = ~np.isnan(X[model.calibration_index_][:, used]).any(axis=1)
    assert model.certificate_.observed == complete.sum()
    # What other columns miss is of no importance.
    rows = np.full_like(other, np.nan)
    rows[:, used] = other[:, used]
    np.testing.assert_array_equal(model.predict(rows), model.predict(other))
    rows[0, used[0]] = np.nan
    assert model.predict(rows[:1]).tolist() == [0]


@pytest.mark.parametrize("frame", [False, True])
def test_columns_by_name_or_position_are_those_of_a_smaller_table(frame, tmp_path):
    X, y, phi, _, other = wide()
    some = [3, 7, 20]
    names = [f"c{j}" for j in range(30)]
    asked = [names[j] for j in some] if frame else some
    phi_of_some = mr.LogisticMissingness([-1.55] * 3, [0.7] * 3)

    def table(rows):
        return pd.DataFrame(rows, columns=names) if frame else rows

    def smaller(rows):
        return table(rows)[asked] if frame else rows[:, some]

    small = certified(mr.KLIEP(), missingness={0: phi_of_some}).fit(smaller(X), y)

    for estimator, models in (
        (mr.KLIEP(), {0: phi}),
        (mr.KLIEP(missingness={0: phi}), None),
    ):
        model = certified(estimator, missingness=models, columns=asked)
        model.fit(table(X), y)
        assert model.columns_.tolist() == asked
        assert model.threshold_ == small.threshold_
        answers = model.predict(table(other))
        np.testing.assert_array_equal(answers, small.predict(smaller(other)))
    mr.save_model(model, tmp_path / "model.skops")
    again = mr.load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(table(other)), answers)
    assert again.certificate_ == model.certificate_
    held = table(X[y == 0][:2000])
    calibrated = certified(small.estimator_, missingness={0: phi}, columns=asked)
    assert calibrated.calibrate(held).certificate_.columns == tuple(asked)
    mr.sensitivity_curve(model, table(X), y, slopes=[0.0], factors=[1.0])


def test_a_learned_phi_keeps_the_level_that_it_has_beside_all_columns():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(4000, 4)), np.repeat([0, 1], 2000)
    Z += rng.normal(size=(4000, 1)) + 1.2 * y[:, None]
    X = corrupted(Z, y, {0: mr.LogisticMissingness([-2.0] * 4, [0.5] * 4)})
    phi = mr.learn_missingness(X[y == 0])
    model = certified(mr.KLIEP(), alpha=0.3, missingness={0: phi}, columns=[0, 1])
    model.fit(X, y)
    trust = model.calibration_.trust
    assert trust.delta == pytest.approx(0.025)
    for kept, whole in zip(trust.model.region(0.025), phi.region(0.05), strict=False):
        np.testing.assert_allclose(kept, whole)


@pytest.mark.parametrize("columns", ["all", "auto"])
def test_complete_tables_and_lost_rows_keep_all_columns(two_normals, columns):
    X, y = two_normals(600, 3, shift=1.0)
    model = certified(columns=columns).fit(X, y)
    assert model.columns_.tolist() == [0, 1, 2]
    assert model.certificate_.columns is None
    trees = HistGradientBoostingClassifier(max_iter=5)
    X[::7, 0] = np.nan
    model = certified(trees, columns=columns, deployment="as-observed").fit(X, y)
    assert len(model.columns_) == 3
    # Nor can columns be left out of rows that are lost as a whole, in either class.
    whole = mr.LogisticMissingness(-1.0, [1.0, 0.0, 0.0], rowwise=True)
    phi = {0: mr.LogisticMissingness(-1.0, 1.0), 1: whole}
    X, y = two_normals(600, 3, shift=1.0)
    options = {"alpha": 0.3, "columns": columns, "missingness": phi}
    assert len(certified(**options).fit(corrupted(X, y, phi), y).columns_) == 3


def test_blanks_of_the_other_class_need_no_model(two_normals):
    phi = mr.LogisticMissingness(-2.0, [1.0, 1.0, -1.0])
    X, y = two_normals(2000, 3, shift=0.3)
    X[y == 1, 2] += 2.5
    X = corrupted(X, y, {0: phi, 1: phi})
    trees = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    model = certified(trees, columns="auto", missingness={0: phi}).fit(X, y)
    assert 2 in model.columns_


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ("best", "columns must be one of"),
        ([], "a list of names or positions"),
        ([0, 9], "columns names 9, and X has 0, 1"),
        (["0"], "They are integers: write 0"),
    ],
)
def test_columns_that_there_are_not_are_refused(two_normals, columns, match):
    with pytest.raises(ValueError, match=match):
        certified(columns=columns).fit(*two_normals(300, 2))
    phi = mr.StepMissingness([1.0, 0.0], 0.0, 0.5)
    with pytest.raises(ValueError, match="φ of single columns"):
        certified(missingness={0: phi}, columns=[0]).fit(*two_normals(300, 2))


@pytest.mark.parametrize(
    "phi",
    [
        mr.StepMissingness([1.0] * 4, [0.0] * 4, [0.4, 0.2, 0.3, 0.1], rowwise=False),
        mr.FunctionMissingness(_rising, rowwise=False, maximum=0.4),
        mr.FunctionMissingness(_rising, rowwise=False),
    ],
)
def test_any_phi_of_columns_can_be_narrowed(two_normals, phi):
    X, y = two_normals(900, 4, shift=1.0)
    X[y == 0] = mr.corrupt(X[y == 0], phi, random_state=0)
    model = certified(mr.KLIEP(), alpha=0.2, missingness={0: phi}, columns=[3, 1])
    model = pickle.loads(pickle.dumps(model.fit(X, y)))
    rows = X[y == 0]
    found = model.calibration_.trust.model.missing_probability(rows[:, [1, 3]])
    np.testing.assert_array_equal(found, phi.missing_probability(rows)[:, [1, 3]])


def test_a_phi_by_names_is_narrowed_in_the_estimator_as_in_the_classifier(two_normals):
    X, y = two_normals(900, 4, shift=1.0)
    X, names = pd.DataFrame(X, columns=list("abcd")), {"d": (-1, 1), "a": (-2, 0)}
    why = {0: mr.LogisticMissingness.from_columns(names)}
    X[y == 0] = mr.corrupt(X[y == 0], why[0], random_state=0)
    options = {"alpha": 0.2, "columns": ["d", "b"]}
    outer = certified(mr.KLIEP(), missingness=why, **options).fit(X, y)
    inner = certified(mr.KLIEP(missingness=why), **options).fit(X, y)
    assert inner.of_used_columns().estimator.missingness[0].coef.tolist() == [0, 1]
    np.testing.assert_array_equal(inner.score_samples(X), outer.score_samples(X))


def test_where_few_rows_are_complete_ways_out_are_named_with_their_power():
    X, y, phi, _, other = wide(n=1000)
    model = certified(mr.KLIEP(), missingness={0: phi})
    with pytest.raises(mr.exceptions.NoCertificateError) as refused:
        model.fit(X, y)
    said = str(refused.value)
    assert "of 500 calibration rows are complete" in said
    assert "deployment='as-observed': expected power" in said
    assert "or more of the " in said
    facts = refused.value.message.facts
    assert facts["power"] > 0.3
    model.set_params(columns=facts["asked"]).fit(X, y)
    assert (model.predict(other) == 1).mean() == pytest.approx(facts["power"], abs=0.2)
