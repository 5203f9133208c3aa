"""Missing rows: what reaches the estimator, and how calibration weighs them."""

import classifiers
import data
import numpy as np
import pytest
from classifiers import Total
from optional_packages import optional
from sklearn import config_context
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import missratio as mr
from missratio.threshold import CalibrationSample, make_rule
from missratio.weights import complete_row_weights

pd = optional("pandas")

contradicted = pytest.mark.filterwarnings(
    "ignore::missratio.missingness.MissingnessContradictionWarning"
)
STEP0 = mr.StepMissingness([1.0, 0.0], 0.0, 0.5)
STEP1 = mr.StepMissingness([0.0, 1.0], 1.0, 0.6)
PER_FEATURE = mr.FunctionMissingness(
    lambda X: 0.4 / (1 + np.exp(-X)), rowwise=False, maximum=0.4
)


def certified(estimator, missingness, **options):
    options = {"alpha": 0.2, "missingness": missingness} | options
    return classifiers.certified(estimator, **options)


@pytest.fixture
def corrupted(two_normals):
    """A table, and the same with rows of either class missing."""

    def draw(models, n=800, seed=0):
        X, y = two_normals(n, 2, seed=seed, shift=1.2)
        return data.corrupted(X, y, models, [seed, 1]), y

    return draw


@pytest.mark.parametrize("pipeline", [False, True])
def test_models_reach_a_ratio_that_has_none(corrupted, pipeline):
    models = {0: STEP0, 1: STEP1}
    X, y = corrupted(models)
    estimator = make_pipeline("passthrough", mr.KLIEP()) if pipeline else mr.KLIEP()
    model = certified(estimator, models).fit(X, y)
    inner = model.estimator_[-1] if pipeline else model.estimator_
    assert inner.missingness == models
    # The user's own estimator stays as it was.
    assert (estimator[-1] if pipeline else estimator).missingness is None
    nested = certified(mr.NaiveBayesRatio(mr.KLIEP()), {1: STEP1}).fit(
        *corrupted({1: STEP1})
    )
    assert nested.estimator_.missingness == {1: STEP1}


@contradicted
@pytest.mark.parametrize("own", ["ignore", {1: STEP0}])
def test_a_ratio_that_has_its_own_keeps_it(corrupted, own):
    X, y = corrupted({1: STEP1})
    model = certified(mr.KLIEP(missingness=own), {1: STEP1}).fit(X, y)
    assert repr(model.estimator_.missingness) == repr(own)


@pytest.mark.parametrize("where", ["classifier", "estimator"])
@pytest.mark.parametrize(("labels", "controlled"), [((0, 1), 1), (("a", "b"), "b")])
def test_models_are_relabelled_where_the_controlled_class_sorts_last(
    corrupted, where, labels, controlled
):
    X, y = corrupted({0: STEP0, 1: STEP1})
    models = {labels[0]: STEP0, labels[1]: STEP1}
    own, given = (None, models) if where == "classifier" else (models, None)
    model = certified(mr.KLIEP(missingness=own), given, controlled_class=controlled)
    model.fit(X, np.array(labels)[y])
    # What the estimator calls 0 is the controlled class.
    found = model.estimator_.missingness
    assert {label: repr(found[label]) for label in (0, 1)} == {
        0: repr(STEP1),
        1: repr(STEP0),
    }
    assert model.certificate_.certified
    lost = np.isnan(X[model.calibration_index_, 0]).sum()
    assert model.certificate_.observed == model.certificate_.rows - lost


@pytest.mark.parametrize("controlled", [0, 1])
def test_an_estimator_that_knows_no_missingness_gets_weights(corrupted, controlled):
    models = {0: STEP0, 1: STEP1}
    X, y = corrupted(models)
    model = certified(Total(), models, controlled_class=controlled).fit(X, y)
    rows = model.training_index_[~np.isnan(X[model.training_index_, 0])]
    np.testing.assert_array_equal(model.estimator_.X_, X[rows])
    np.testing.assert_array_equal(model.estimator_.y_, (y != controlled)[rows])
    expected = np.where(
        y[rows] == 0,
        1.0 / (1.0 - 0.5 * (X[rows, 0] > 0)),
        1.0 / (1.0 - 0.6 * (X[rows, 1] > 1)),
    )
    np.testing.assert_allclose(model.estimator_.sample_weight_, expected)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("routed", [False, True])
def test_weights_are_multiplied_with_the_users_own(corrupted, inside, own, routed):
    X, y = corrupted({0: STEP0})
    given = np.linspace(1.0, 2.0, len(y))
    plain = certified(Total(), {0: STEP0}).fit(X, y)
    name = "total__sample_weight" if inside and not routed else "sample_weight"
    params = {name: given} if own else {}
    with config_context(enable_metadata_routing=routed):
        inner = Total().set_fit_request(sample_weight=True) if routed else Total()
        estimator = make_pipeline("passthrough", inner) if inside else inner
        model = certified(estimator, {0: STEP0}).fit(X, y, **params)
    rows = model.training_index_[~np.isnan(X[model.training_index_, 0])]
    expected = plain.estimator_.sample_weight_ * (given[rows] if own else 1.0)
    fitted = model.estimator_[-1] if inside else model.estimator_
    np.testing.assert_allclose(fitted.sample_weight_, expected)


def test_of_single_losses_complete_rows_count_for_the_others(corrupted):
    X, y = corrupted({1: PER_FEATURE})
    model = certified(LogisticRegression(), {1: PER_FEATURE}).fit(X, y)
    rows = model.training_index_
    rows = rows[~np.isnan(X[rows]).any(axis=1)]
    weights = np.where(y[rows] == 1, complete_row_weights(X[rows], PER_FEATURE), 1.0)
    direct = LogisticRegression().fit(X[rows], y[rows], sample_weight=weights)
    np.testing.assert_allclose(model.estimator_.coef_, direct.coef_, rtol=1e-6)
    # None is complete.
    X[y == 1, 0] = np.nan
    with pytest.raises(ValueError, match=r"No row of class 1 .*KLIEP.*TiltedImputer"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        certified(KNeighborsClassifier(), {0: STEP0}).fit(*corrupted({0: STEP0}))


@pytest.mark.parametrize("rule", ["paper", "bernstein", "betting", "flipped-betting"])
def test_the_threshold_is_the_rules_on_weighted_rows(corrupted, rule):
    X, y = corrupted({0: STEP0}, n=8000)
    model = certified(Total(), {0: STEP0}, rule=rule, alpha=0.4).fit(X, y)
    held = X[model.calibration_index_]
    weights = complete_row_weights(held, STEP0)
    sample = CalibrationSample.build(held.sum(axis=1), weights, 2.0)
    chosen = make_rule(rule).select(sample, 0.4, 0.1)
    assert model.threshold_ == pytest.approx(chosen.threshold, rel=1e-5)
    assert model.certificate_.rule == rule


def test_single_missing_values_weigh_complete_rows_by_a_product(corrupted):
    X, y = corrupted({0: PER_FEATURE}, n=2000)
    model = certified(mr.KLIEP(), {0: PER_FEATURE}, rule="thinning").fit(X, y)
    held = X[model.calibration_index_]
    complete = ~np.isnan(held).any(axis=1)
    certificate = model.certificate_
    assert certificate.rows == 1000
    assert certificate.observed == complete.sum() < 1000
    weights = np.prod(1 / (1 - 0.4 / (1 + np.exp(-held[complete]))), axis=1)
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert certificate.effective_rows == pytest.approx(kish)
    assert f"{complete.sum()} are complete" in str(certificate)
    scores = model.score_samples(held[complete])
    assert np.isclose(scores, model.threshold_, 1e-5, 1e-5).any()


def test_a_phi_that_calibration_rows_contradict_is_not_certified():
    # Mirrored, it was certified with a true error of .29 at α = .1.
    rng, mirrored = np.random.default_rng(0), mr.StepMissingness(-1.0, 0.0, 0.8)
    Z, y = data.stacked(rng.normal(size=(1500, 1)), rng.normal(1.5, 1, (1500, 1)))
    X = data.corrupted(Z, y, {0: mr.StepMissingness(1.0, 0.0, 0.8)}, rng)
    error = mr.missingness.MissingnessContradictionError
    with pytest.raises(error, match="class 0") as caught:
        certified(LogisticRegression(), {0: mirrored}, alpha=0.1).fit(X, y)
    assert caught.value.checks[0].found == pytest.approx(0.4, abs=0.05)
    # Odds of 4 are stated as 1.5: as wrong as that they may be said to be.
    wrong = {0: mr.StepMissingness(1.0, 0.0, 0.6)}
    model = certified(LogisticRegression(), wrong, alpha=0.4, delta=0.05)
    with pytest.raises(error):
        model.fit(X, y)
    assert model.set_params(odds_factor=3.0).fit(X, y).certificate_.certified
    # Training rows are tested too, but where rows come in units.
    model = certified(Total().fit(Z, y), {0: mr.StepMissingness(1.0, 0.0, 0.8)})
    with pytest.raises(error):
        model.calibrate(X[y == 0], X0_training=Z[y == 1])
    model.calibrate(X[y == 0], X0_training=Z[y == 1], groups=np.arange(1500))


@contradicted
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_scaler_before_the_classifier_is_refused(sign):
    rng = np.random.default_rng(0)
    phi = mr.LogisticMissingness(-sign * 8.0, [sign / 15.0])
    Z = rng.normal(120.0, 15.0, (3000, 1))
    X, y = data.stacked(mr.corrupt(Z[:1500], phi, rng), 30.0 + Z[1500:])
    model = certified(mr.KLIEP(), {0: phi})
    assert model.fit(X, y).certificate_.certified
    with pytest.raises(mr.missingness.MissingnessContradictionError, match="scaler"):
        make_pipeline(StandardScaler(), model).fit(X, y)


def wrong_form(n=3000):
    """Class 0 loses its middle or its ends: no logistic φ does that."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(2 * n, 1))
    Z = common + 0.6 * rng.normal(size=(2 * n, 3))
    y = np.repeat([0, 1], n)
    Z[y == 1] += 1.0
    X = Z.copy()
    lost = rng.random(2 * n) < np.where(np.abs(Z[:, 0]) > 1.0, 0.7, 0.1)
    X[lost & (y == 0), 0] = np.nan
    return X, Z, y


@pytest.mark.parametrize("look_ups", [0, 100])
def test_a_learned_phi_that_its_tests_refute_is_refused(look_ups):
    X, Z, y = wrong_form()
    revealed = data.looked_up(X, Z, look_ups, np.random.default_rng(0))[y == 0]
    with pytest.warns(mr.learning.MissingnessWarning):
        phi = mr.learn_missingness(X[y == 0], revealed, from_table=not look_ups)
    options = {"alpha": 0.2, "missingness": {0: phi}, "random_state": 0}
    model = mr.NeymanPearsonClassifier(mr.KLIEP(), **options)
    with pytest.raises(
        mr.missingness.MissingnessContradictionError, match=r"odds_factor of \d"
    ) as refused:
        model.fit(X, y)
    # As large a factor as was found lets it pass, and makes it cautious.
    factor = max(check.odds_factor for check in refused.value.checks)
    model.set_params(odds_factor=factor, on_infeasible="reject_all").fit(X, y)


def test_no_seed_decides_whether_blanks_are_refused(two_normals, tmp_path):
    X, y = two_normals(600, 2, seed=0, shift=1.2)
    ratio, members = mr.KLIEP(missingness="ignore"), np.arange(len(y)) % 2
    fitted = LogisticRegression().fit(X, y)
    X[np.flatnonzero(y == 0)[0], 0] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    frame.to_parquet(tmp_path / "t.parquet")
    source = mr.scan_parquet(tmp_path / "t.parquet", target="y")
    units = np.where(np.arange(len(y)) < 12, 0, np.arange(len(y)))[y == 0]
    alone = mr.NeymanPearsonClassifier(ratio, 0.1)
    several = mr.MulticlassNeymanPearsonClassifier(ratio, {0: 0.1})
    grouped = mr.GroupedNeymanPearsonClassifier(ratio, 0.1)
    known = mr.NeymanPearsonClassifier(fitted, 0.1)
    for seed in range(6):
        for model in (alone, several, grouped, known):
            model.set_params(random_state=seed)
        for fit in (
            lambda: alone.fit(source),
            lambda: alone.fit(X, y),
            lambda: several.fit(X, y),
            lambda: grouped.fit(X, y, members),
            lambda: known.calibrate(X[y == 0], groups=units),
        ):
            with pytest.raises(ValueError, match="certificate for complete") as info:
                fit()
            for remedy in ("missingness={0: model}", "inclusion", "as-observed"):
                assert remedy in str(info.value)
        # Blanks of the other class are left out, whatever the seed.
        model = alone.fit(X, 1 - y)
        assert model.certificate_.rows == model.certificate_.observed


@contradicted
@pytest.mark.parametrize("learned", [True, False])
def test_calibration_several_classes_and_groups_refuse_it_too(learned):
    X, Z, y = wrong_form()
    phi = mr.LogisticMissingness([2.0, -np.inf, -np.inf], [-1.0, 0.0, 0.0])
    if learned:
        with pytest.warns(mr.learning.MissingnessWarning):
            phi = mr.learn_missingness(X[y == 0])
    options = {"alpha": 0.2, "missingness": {0: phi}, "random_state": 0}
    model = mr.NeymanPearsonClassifier(LogisticRegression().fit(Z, y), **options)
    groups = np.where(np.arange(len(X)) % 2, "odd", "even")
    several = mr.MulticlassNeymanPearsonClassifier(mr.KLIEP(), **options)
    grouped = mr.GroupedNeymanPearsonClassifier(mr.KLIEP(), **options)
    for refuse in (
        lambda: model.calibrate(X[y == 0]),
        lambda: several.set_params(alpha={0: 0.2}).fit(X, y),
        lambda: grouped.fit(X, y, groups),
    ):
        with pytest.raises(mr.missingness.MissingnessContradictionError) as refused:
            refuse()
        assert refused.value.message.label == 0
    # Rows as they come need no φ.
    model.set_params(deployment="as-observed", estimator=mr.KLIEP().fit(Z, y))
    assert model.calibrate(Z[y == 0]).certificate_.certified


def labelled(two_normals, phi, n=600):
    X, y = two_normals(n, 2, shift=1.0)
    X[y == 0] = mr.corrupt(X[y == 0], phi, random_state=0)
    return X, np.array(["ok", "bad"])[y]


@pytest.mark.parametrize("kind", ["two", "several", "groups"])
def test_a_model_by_itself_is_that_of_the_class_that_has_blanks(two_normals, kind):
    X, y = labelled(two_normals, PER_FEATURE)
    groups = np.arange(len(y)) % 2

    def fit(missingness, estimator=mr.KLIEP(), X=X):  # noqa: B008
        options = {"missingness": missingness, "random_state": 0}
        if kind == "several":
            model = mr.MulticlassNeymanPearsonClassifier(
                estimator, {"ok": 0.2}, **options
            )
            return model.fit(X, y)
        options["controlled_class"] = "ok"
        if kind == "two":
            return certified(estimator, **options).fit(X, y)
        model = mr.GroupedNeymanPearsonClassifier(estimator, 0.2, **options)
        return model.fit(X, y, groups)

    def thresholds(model):
        every = getattr(model.certificate_, "certificates", [model.certificate_])
        return [each.threshold for each in every]

    named = thresholds(fit({"ok": PER_FEATURE}))
    assert thresholds(fit(PER_FEATURE)) == named
    assert thresholds(fit(None, mr.KLIEP(missingness=PER_FEATURE))) == named
    both = np.where(np.arange(len(X))[:, None] % 50 == 0, np.nan, X)
    with pytest.raises(ValueError, match="classes 'bad', 'ok' have some"):
        fit(PER_FEATURE, X=both)


def test_a_model_by_itself_calibrates_is_saved_and_narrowed(two_normals, tmp_path):
    phi = mr.LogisticMissingness([-1.5, -1.5], [0.4, 0.4])
    X, y = labelled(two_normals, phi)
    options = {"controlled_class": "ok", "random_state": 0}
    model = certified(mr.KLIEP(), phi, **options).fit(X, y)
    mr.save_model(model, tmp_path / "m.skops")
    again = mr.load_model(tmp_path / "m.skops").predict(X)
    np.testing.assert_array_equal(again, model.predict(X))
    assert mr.sensitivity_curve(model, X, y).tipping_factor > 1.0
    fitted = mr.KLIEP(missingness=phi).fit(X, np.where(y == "ok", 0, 1))
    first, second = (
        certified(fitted, given, random_state=0).calibrate(X[y == "ok"]).threshold_
        for given in (phi, {0: phi})
    )
    assert first == second
    one = certified(mr.KLIEP(), phi, columns=[1], **options).fit(X, y)
    assert one.columns_.tolist() == [1]


def test_warnings_speak_of_the_users_labels(two_normals):
    X, y = labelled(two_normals, PER_FEATURE, 1500)
    # The other class has lost none: a φ of its own is contradicted.
    wrong = {"ok": PER_FEATURE, "bad": PER_FEATURE}
    model = certified(mr.KLIEP(), wrong, controlled_class="ok", random_state=0)
    with pytest.warns(UserWarning, match="φ of class 'bad'") as told:
        model.fit(X, y)
    assert not any("class 1" in str(each.message) for each in told)


@pytest.mark.needs("pandas")
def test_boosting_reads_categories_beside_phi(two_normals):
    numbers = mr.LogisticMissingness([-1.5, -1.5], [0.4, 0.4])
    X, y = labelled(two_normals, numbers, 800)
    table = pd.DataFrame(X, columns=["a", "b"])
    table["kind"] = pd.Categorical(np.where(np.arange(len(y)) % 4 == 0, "u", "v"))
    phi = mr.LogisticMissingness([-1.5, -1.5, -60.0], [0.4, 0.4, 0.0])
    boosting = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    model = certified(boosting, {"ok": phi}, controlled_class="ok", random_state=0)
    model.fit(table, y)
    assert model.certificate_.certified
    assert model.estimator_.is_categorical_.tolist() == [False, False, True]
