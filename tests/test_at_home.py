"""At home among scikit-learn's tools: what a data scientist tries on the first day.

Checks at defaults; scorers and searches; curves and importances; probabilities of a
stated prior; SciPy's words; types, short reprs and documented results.
"""

import inspect
import re
import typing
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax
from sklearn import clone, config_context
from sklearn.calibration import CalibrationDisplay
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

import missratio as mr
from missratio.objective import KLIEPObjective

mpl.use("Agg")
import matplotlib.pyplot as plt

RATIOS = {
    "KLIEP": mr.KLIEP(),
    "KLIEPCV": mr.KLIEPCV(random_state=0),
    "naive Bayes": mr.NaiveBayesRatio(),
    "logistic": mr.FDivergenceRatio("js"),
    "classifier": mr.ClassifierRatio(LogisticRegression()),
    "ulsif": mr.KernelRatio("ulsif", random_state=0),
    "rulsif": mr.KernelRatio("rulsif", random_state=0),
    "kernel KLIEP": mr.KernelRatio("kliep", random_state=0),
    "kmm": mr.KernelRatio("kmm", random_state=0),
    "objective": mr.ObjectiveRatio(KLIEPObjective()),
    "the best": mr.Ratio(random_state=0),
}
CLASSIFIERS = {
    "by default": mr.NeymanPearsonClassifier(alpha=0.1, random_state=0),
    "of a ratio": mr.NeymanPearsonClassifier(mr.KLIEP(), 0.1, random_state=0),
    "of another": mr.NeymanPearsonClassifier(LogisticRegression(), 0.1, random_state=0),
    "of imputations": mr.ImputationEnsemble(
        mr.TiltedImputer("ignore", random_state=0), LogisticRegression()
    ),
}


# What scikit-learn's checks of every estimator may not ask, and why. Without a penalty
# the coefficient of a feature that is constant in the denominator isn't determined.
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
NO_PENALTY = {
    "check_sample_weights_shape": "a feature is constant in a class: refused",
    "check_sample_weights_not_overwritten": "a feature is constant in a class: refused",
    WEIGHTS: "no finite optimum with fewer rows than features: refused",
}
LEFT_OUT = {WEIGHTS: "a row of weight two is one row in standard errors, or left out"}
FOLDS = LEFT_OUT | {
    "check_fit2d_1feature": "a class has fewer rows than there are folds: refused",
}
UNBOUNDED = {"check_classifiers_train": "the ratio of separated classes has no bound"}
CERTIFIES = {
    "check_estimators_nan_inf": "a row with NaN gets the controlled class, by contract",
    "check_classifiers_train": "the threshold isn't where probabilities are even",
}
ONE_LABEL = {
    "check_classifiers_one_label_sample_weights": (
        "where scores tell nothing all rows get the controlled class"
    )
}


def lenient(estimator, **options):
    """Levels that the checks' small tables can meet, or else everything is refused."""
    options = {"on_infeasible": "reject_all", "random_state": 0} | options
    return mr.NeymanPearsonClassifier(
        estimator, 0.2, 0.2, controlled_class=None, **options
    )


CHECKED = {
    "KLIEP": (mr.KLIEP(), NO_PENALTY),
    "KLIEP that ignores blanks": (mr.KLIEP(missingness="ignore"), NO_PENALTY),
    "KLIEP, l2": (mr.KLIEP(l2=0.1), {}),
    "KLIEP, polynomial": (mr.KLIEP(basis="polynomial", l2=0.1), {}),
    "KLIEP, l1": (mr.KLIEP(l1=0.5, penalty_weights="standard-error"), {}),
    "KLIEPCV": (mr.KLIEPCV(random_state=0), FOLDS),
    "FDivergenceRatio": (mr.FDivergenceRatio(), NO_PENALTY),
    "JS, l2": (mr.FDivergenceRatio(l2=0.1), {}),
    "KL, l2": (mr.FDivergenceRatio("kl", l2=0.1), {}),
    "ObjectiveRatio": (mr.ObjectiveRatio(KLIEPObjective()), NO_PENALTY),
    "NaiveBayesRatio": (mr.NaiveBayesRatio(), NO_PENALTY),
    "naive Bayes, l2": (mr.NaiveBayesRatio(mr.KLIEP(l2=0.1)), {}),
    "KernelRatio": (mr.KernelRatio(random_state=0), LEFT_OUT | UNBOUNDED),
    "kernel KLIEP": (mr.KernelRatio("kliep", sigma_grid=2, random_state=0), LEFT_OUT),
    "kmm": (mr.KernelRatio("kmm", sigma_grid=2, cv=2, random_state=0), {}),
    "ClassifierRatio": (
        mr.ClassifierRatio(),
        {WEIGHTS: "weights are scaled to their mean"},
    ),
    "Ratio": (mr.Ratio(random_state=0), FOLDS),
    "classifier": (lenient(None), CERTIFIES | ONE_LABEL),
    "of regression": (lenient(LogisticRegression()), CERTIFIES | ONE_LABEL),
    "of a ratio": (
        lenient(mr.KLIEP(l2=0.1), missingness_delta=0.1, odds_factor=1.5),
        CERTIFIES,
    ),
    "GaussianBasis": (mr.GaussianBasis(), {}),
    "PolynomialBasis": (mr.PolynomialBasis(), {}),
    "TiltedImputer": (mr.TiltedImputer(), {}),
    "TiltedImputer that ignores": (mr.TiltedImputer("ignore", random_state=0), {}),
    "ImputationEnsemble": (CLASSIFIERS["of imputations"], {}),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CHECKED)
def test_scikit_learns_checks_fail_where_that_is_meant_and_nowhere_else(name):
    estimator, declared = CHECKED[name]
    checked = check_estimator(
        estimator, expected_failed_checks=declared, on_skip=None, on_fail=None
    )
    failed = {each["check_name"]: each["exception"] for each in checked
              if each["status"] == "failed"}  # fmt: skip
    assert not failed
    meant = {each["check_name"] for each in checked if each["status"] == "xfail"}
    assert meant == set(declared)


@pytest.mark.filterwarnings("ignore")
def test_a_classifier_at_defaults_fails_checks_only_where_it_cannot_promise():
    checked = check_estimator(mr.NeymanPearsonClassifier(), on_skip=None, on_fail=None)
    failed = [each["exception"] for each in checked if each["status"] == "failed"]
    refusal = re.compile(
        "No threshold certifies|NoCertificateError|controlled_class=0 is not among"
    )
    assert all(refusal.search(str(each)) for each in failed), failed


def test_several_promises_need_what_the_checks_dont_give(labelled):
    """Levels by label, and the group of each row: a fit without them names them."""
    X, y, _ = labelled
    with pytest.raises(TypeError, match=r"alpha must map classes .* \{'sick': 0.05\}"):
        mr.MulticlassNeymanPearsonClassifier().fit(X, y)
    with pytest.raises(TypeError, match="required positional argument: 'groups'"):
        mr.GroupedNeymanPearsonClassifier().fit(X, y)


@pytest.fixture
def labelled(two_normals):
    """Rows, what they are called, and the unit that each belongs to."""
    X, y = two_normals(400, 2, shift=1.5)
    units = np.random.default_rng(0).integers(0, 60, len(y))
    return X, np.array(["well", "sick"])[y], units


CERTIFIED = mr.NeymanPearsonClassifier(
    mr.FDivergenceRatio("js"), 0.2, controlled_class="well", random_state=0
)


@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=0)])
def test_searches_score_the_power_whatever_labels_are_called(labelled, cv):
    X, y, _ = labelled
    power = mr.error_scorer("power")
    assert cross_val_score(CERTIFIED, X, y, scoring=power, cv=cv).min() > 0.5
    grid = GridSearchCV(CERTIFIED, {"estimator__l2": [0.0, 0.1]}, scoring=power, cv=cv)
    assert (grid.fit(X, y).cv_results_["mean_test_score"] > 0.5).all()
    assert set(grid.predict(X)) == {"well", "sick"}


def test_curves_are_scored_on_rows_with_blanks(labelled):
    X, y, _ = labelled
    phi = mr.LogisticMissingness([-3.0, -3.0], [0.5, 0.5])
    lossy = mr.corrupt(X, phi, random_state=0)
    why = {"missingness": {"well": phi, "sick": phi}, "random_state": 0}
    classifier = mr.NeymanPearsonClassifier(
        mr.FDivergenceRatio("js", l2=0.01), 0.3, 0.2, **why,
        controlled_class="well", on_infeasible="reject_all",
    )  # fmt: skip
    assert (cross_val_score(classifier, lossy, y, scoring="roc_auc") > 0.5).all()
    # No probability is known of a row with a blank, whatever the estimator.
    blank = np.isnan(lossy).any(axis=1)
    for each in (
        *(clone(classifier).set_params(estimator=kind) for kind in (None, mr.KLIEP())),
        clone(classifier).set_params(estimator=LogisticRegression()),
        mr.MulticlassNeymanPearsonClassifier(alpha={"well": 0.3}, **why),
    ):
        each.fit(lossy, y)
        shares = each.predict_proba(lossy)
        assert np.isnan(shares[blank]).all()
        np.testing.assert_array_equal(shares[~blank], each.predict_proba(lossy[~blank]))


@pytest.mark.parametrize("splitter", [GroupKFold(3), LeaveOneGroupOut()])
def test_units_stay_together_in_cross_validation(labelled, splitter):
    X, y, units = labelled
    units = units % 4
    scorers = {kind: mr.error_scorer(kind) for kind in ("power", "type_i_error")}
    found = cross_validate(
        CERTIFIED, X, y, groups=units, cv=splitter, scoring=scorers, error_score="raise"
    )
    assert found["test_power"].min() > 0.4
    assert found["test_type_i_error"].max() <= 0.0


def test_groups_are_routed_to_a_classifier_with_a_threshold_for_each(labelled):
    X, y, units = labelled
    groups, power = units % 2, mr.error_scorer("power")
    with config_context(enable_metadata_routing=True):
        grouped = mr.GroupedNeymanPearsonClassifier(
            mr.FDivergenceRatio("js"), 0.2, controlled_class="well", random_state=0
        ).set_fit_request(groups=True)
        scores = cross_val_score(
            grouped, X, y, params={"groups": groups}, scoring=power, cv=3
        )
        grid = GridSearchCV(grouped, {"estimator__l2": [0.0]}, scoring=power, cv=3)
        assert grid.fit(X, y, groups=groups).best_score_ == scores.mean() > 0.3
        grouped.set_score_request(groups=True)
        right = cross_val_score(grouped, X, y, params={"groups": groups}, cv=3)
        best = grid.best_estimator_
        assert best.score(X, y, groups) == (best.predict(X, groups) == y).mean()
        assert right.min() > 0.6
        # One threshold for all takes them for units, and predicts without them.
        units_kept = clone(CERTIFIED).set_fit_request(groups=True)
        params = {"groups": units}
        options = {"scoring": power, "cv": GroupKFold(3), "error_score": "raise"}
        assert cross_val_score(units_kept, X, y, params=params, **options).min() > 0.3


@pytest.mark.parametrize("kind", ["", "Multiclass", "Grouped"])
def test_errors_are_those_of_complete_rows_whichever_classifier_loses_values(kind):
    rng = np.random.default_rng(0)
    y, X = np.repeat(["well", "sick"], 6000), rng.normal(size=(12_000, 2))
    X[y == "sick"] += 1.5
    lossy, phi = X.copy(), mr.LogisticMissingness([0.0, -np.inf], [1.0, 0.0])
    lossy[y == "well"] = mr.corrupt(X[y == "well"], phi, rng)
    clf = getattr(mr, f"{kind}NeymanPearsonClassifier")(LogisticRegression(), 0.1)
    options = {"alpha": {"well": 0.1}} if kind == "Multiclass" else {}
    options = options or {"controlled_class": "well"}
    clf.set_params(missingness={"well": phi}, random_state=0, **options)
    groups = {"groups": rng.choice(["a", "b"], 12_000)} if kind == "Grouped" else {}
    clf.fit(lossy, y, **groups)
    # The class that is meant is the one whose error is bounded.
    score = mr.error_scorer("type_i_error")
    truth = score(clf, X, y, **groups)
    assert score(clf, lossy, y, **groups) == pytest.approx(truth, abs=0.015)
    assert truth == mr.error_scorer("type_i_error", "well")(clf, X, y, **groups)


def test_of_several_bounded_errors_a_scorer_asks_which_is_meant(labelled):
    X, y, _ = labelled
    clf = mr.MulticlassNeymanPearsonClassifier(
        LogisticRegression(), alpha={"well": 0.4, "sick": 0.4}, random_state=0
    ).fit(X, y)
    with pytest.raises(ValueError, match="'well', 'sick' are bounded"):
        mr.error_scorer("type_i_error")(clf, X, y)


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), mr.FDivergenceRatio(l2=0.01)]
)
def test_several_classes_have_probabilities_of_which_scores_are_the_logarithms(
    two_normals, estimator
):
    X, y = two_normals(400, 2, shift=1.5)
    y = np.where((y == 1) & (X[:, 1] > 0.8), 2, y)
    clf = mr.MulticlassNeymanPearsonClassifier(estimator, {0: 0.3}, random_state=0)
    proba = clf.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba, softmax(clf.class_scores(X), axis=1), atol=1e-12)
    assert roc_auc_score(y, proba, multi_class="ovr") > 0.8
    svc = mr.MulticlassNeymanPearsonClassifier(SVC(), {0: 0.3}, random_state=0)
    assert not hasattr(svc.fit(X, y), "predict_proba")


@pytest.mark.needs("matplotlib")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*RATIOS, *CLASSIFIERS])
def test_curves_and_importances_of_every_ratio_and_classifier(two_normals, name):
    # Of each class one row is where no other is.
    X, y = two_normals(150, 2, shift=1.0)
    X = np.concatenate([X, [[40.0, 40.0], [-40.0, -40.0]]])
    y = np.array(["well", "sick"])[np.append(y, [1, 0])]
    model = (RATIOS | CLASSIFIERS)[name]
    if isinstance(model, mr.NeymanPearsonClassifier):
        model = model.set_params(controlled_class="well")
    near = X[:-2], y[:-2]
    model.fit(*near)
    assert np.isfinite(model.decision_function(X)).all()
    assert RocCurveDisplay.from_estimator(model, X, y).roc_auc > 0.7
    found = permutation_importance(model, *near, n_repeats=2, random_state=0)
    assert np.isfinite(found.importances).all()
    display = CalibrationDisplay.from_estimator(model, X, y, n_bins=4)
    assert np.isfinite(display.prob_pred).all()
    over = PartialDependenceDisplay.from_estimator(model, near[0], [0])
    assert np.isfinite(over.pd_results[0]["average"]).all()
    plt.close("all")


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("controlled", ["well", "sick"])
def test_probabilities_are_the_estimators_whichever_class_is_controlled(
    labelled, controlled
):
    X, y, units = labelled
    fitted = LogisticRegression().fit(X, y)
    options = {"alpha": 0.2, "controlled_class": controlled, "random_state": 0}
    calibrated = mr.NeymanPearsonClassifier(fitted, **options)
    calibrated.calibrate(X[y == controlled])
    np.testing.assert_array_equal(calibrated.predict_proba(X), fitted.predict_proba(X))
    for each in (
        mr.NeymanPearsonClassifier(LogisticRegression(), **options).fit(X, y),
        mr.GroupedNeymanPearsonClassifier(LogisticRegression(), **options).fit(
            X, y, groups=units % 2
        ),
    ):
        proba = each.predict_proba(X)
        assert proba[y == each.classes_[1], 1].mean() > 0.6
        assert RocCurveDisplay.from_estimator(each, X, y).roc_auc > 0.8
    plt.close("all")
    with pytest.raises(AttributeError, match="predict_proba"):
        _ = mr.NeymanPearsonClassifier(alpha=0.1).predict_proba


def test_probabilities_are_those_of_a_stated_prior(two_normals):
    X, y = two_normals(400, 2, shift=1.0)
    ratio = mr.KLIEP().fit(X, y)
    even, rare = ratio.predict_proba(X), ratio.predict_proba(X, prior=0.1)
    np.testing.assert_array_equal(even.argmax(axis=1), ratio.predict(X))
    np.testing.assert_allclose(even.sum(axis=1), 1.0)
    odds = rare[:, 1] / rare[:, 0]
    np.testing.assert_allclose(odds, ratio.predict_ratio(X) / 9.0)
    # Rows of which one in ten is the numerator's have the probabilities they are given.
    chosen = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:44]])
    assert rare[chosen, 1].mean() == pytest.approx(0.1, abs=0.02)
    with pytest.raises(ValueError, match="prior"):
        ratio.predict_proba(X, prior=1.0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tests_speak_as_scipys(two_normals):
    X, y = two_normals(60, 2, shift=1.0)
    test = mr.ratio_test(X[y == 1], X[y == 0], n_resamples=99, random_state=0)
    assert test.pvalue == 0.01
    assert test.statistic > 2.0
    found = mr.estimate_divergence(X[y == 1], X[y == 0], "js", random_state=0)
    interval = found.confidence_interval
    assert interval.low < found.estimate < interval.high
    X[X > 2.0] = np.nan
    phi = mr.learn_missingness(X)
    for check in [*phi.checks, *mr.missingness_check(X, phi.as_known())]:
        assert check.pvalue is None or 0.0 <= check.pvalue <= 1.0
        assert np.isfinite(check.statistic)


PUBLIC = {name: getattr(mr, name) for name in mr.__all__}
FUNCTIONS = {name: part for name, part in PUBLIC.items() if inspect.isfunction(part)}
CLASSES = {name: part for name, part in PUBLIC.items() if inspect.isclass(part)}
METHODS = {
    f"{name}.{key}": part
    for name, each in CLASSES.items()
    for key, part in inspect.getmembers(each, inspect.isroutine)
    if not key.startswith("_") and str(part.__module__).startswith("missratio")
}
SIGNATURES = {
    name: inspect.signature(part)
    for name, part in PUBLIC.items()
    if callable(part) and not inspect.ismodule(part)
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_alpha_is_the_level_of_an_error_and_defaults_are_short(name):
    parameters = SIGNATURES[name].parameters
    assert "alpha" not in parameters or "delta" in parameters
    assert all(len(repr(each.default)) < 60 for each in parameters.values())


def test_results_have_short_reprs():
    rng = np.random.default_rng(0)
    roc = mr.np_roc(rng.normal(0, 1, 500), rng.normal(2, 1, 500))
    assert len(repr(roc)) < 80
    assert len(repr(mr.evaluation.compare_np_roc(roc, roc))) < 80
    assert len(repr(mr.TypeIErrorMonitor(0.1).update(np.zeros(50)))) < 80
    X, y = rng.normal(size=(200, 3)), np.repeat([0, 1], 100)
    ratio = mr.KLIEP().fit(X, y)
    assert len(repr(mr.ratio_uncertainty(ratio, X, y))) < 80
    classifier = mr.NeymanPearsonClassifier(ratio, alpha=0.3, random_state=0).fit(X, y)
    assert len(repr(classifier.calibration_)) < 400


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_typed_to_what_they_return(name):
    returned = typing.get_type_hints(FUNCTIONS[name])["return"]
    assert returned is not typing.Any


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_what_is_returned_is_described(name):
    """Numpydoc's RT03: a type alone says nothing."""
    lines = inspect.getdoc((FUNCTIONS | METHODS)[name]).split("\n")
    if "Returns" in lines:
        start = lines.index("Returns") + 2
        section = [*lines[start:], ""]
        section = section[: section.index("")]
        assert len(section) > 1
        assert section[-1].startswith("    ")


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_everything_has_an_example(name):
    """Numpydoc's EX01; an exception shows itself where it is raised."""
    part = PUBLIC[name]
    if not (inspect.isclass(part) and issubclass(part, Exception)):
        assert "\nExamples\n--------\n" in inspect.getdoc(part)


def words_and_numbers(n_rows=1200):
    """A column of words and one of numbers, both of which tell the classes apart."""
    rng = np.random.default_rng(0)
    y = np.repeat(["well", "sick"], n_rows // 2)
    sick = y == "sick"
    word = np.where(rng.random(n_rows) < 0.3 + 0.4 * sick, "yes", "no").astype(object)
    word[rng.random(n_rows) < np.where(sick, 0.05, 0.5)] = None
    return {"word": word.tolist(), "number": rng.normal(size=n_rows) + sick}, y


AS_OBSERVED = {"deployment": "as-observed", "random_state": 0}
FRAMES = {
    "None": lambda data: pd.DataFrame(data).astype({"word": object}),
    "NaN": lambda data: (
        pd.DataFrame(data).astype({"word": object}).replace({None: np.nan})
    ),
    "string": lambda data: pd.DataFrame(data).astype({"word": "string"}),
    "category": lambda data: pd.DataFrame(data).astype({"word": "category"}),
    "polars": pl.DataFrame,
}


@pytest.mark.parametrize("fitted", FRAMES)
def test_a_row_has_one_score_whatever_its_frame_and_its_blanks(fitted):
    data, y = words_and_numbers()
    alone = roc_auc_score(y == "sick", data["number"])
    encoder = ColumnTransformer(
        [("word", OneHotEncoder(handle_unknown="ignore"), ["word"])],
        remainder="passthrough",
    )
    for estimator in (None, make_pipeline(encoder, LogisticRegression())):
        model = mr.NeymanPearsonClassifier(estimator, 0.1, **AS_OBSERVED)
        model.set_params(controlled_class="well").fit(FRAMES[fitted](data), y)
        scores = [model.score_samples(frame(data)) for frame in FRAMES.values()]
        assert roc_auc_score(y == "sick", scores[0]) > alone
        for other in scores[1:]:
            np.testing.assert_allclose(other, scores[0], rtol=1e-12)
        # One row by itself, whose blanks are numbers for pandas.
        blank = data["word"].index(None)
        row = pd.DataFrame([{"word": np.nan, "number": data["number"][blank]}])
        np.testing.assert_allclose(model.score_samples(row), scores[0][blank])


def test_rows_with_a_word_that_was_never_seen_get_the_controlled_class():
    data, y = words_and_numbers()
    rare = np.array(data["word"], dtype=object)
    rare[:3] = "rare"
    X = pd.DataFrame(data | {"word": rare})
    model = mr.NeymanPearsonClassifier(
        None, 0.1, controlled_class="well", **AS_OBSERVED
    )
    encoder = ColumnTransformer([("word", OneHotEncoder(), ["word"])])
    line = make_pipeline(encoder, LogisticRegression())
    several = mr.MulticlassNeymanPearsonClassifier(line, {"well": 0.3}, **AS_OBSERVED)
    for each in (model, several):
        with warnings.catch_warnings(action="ignore"):
            each.fit(X, y)
        # Known are the words of training rows; the others' rows calibrate alike.
        trained = set(X["word"].iloc[each.training_index_].dropna())
        assert set(each._words.seen["word"]) == trained
        new = pd.DataFrame({"word": ["YES", "no ", "yes", None], "number": 9.0})
        with pytest.warns(
            mr.classifier.UnknownWordWarning,
            match=r"Column 'word' has 'YES', 'no ' in 2 of 4 row\(s\).*only to 'no'",
        ):
            labels = each.predict(new)
        assert labels[:2].tolist() == ["well", "well"]
        assert labels[2] == "sick"


@pytest.mark.parametrize("kind", ["string", "category"])
def test_words_go_wherever_categories_do(kind, tmp_path):
    data, y = words_and_numbers()
    data["word"] = ["none" if word is None else word for word in data["word"]]
    Z = pd.DataFrame(data).astype({"word": kind})
    phi = mr.LogisticMissingness.from_columns({"number": (-1.0, {"number": 1.0})})
    X, well = Z.copy(), y == "well"
    X[well] = mr.corrupt(Z[well], phi, random_state=0)
    assert X["word"].dtype == Z["word"].dtype
    assert mr.missingness_patterns(X).counts[0] == X.notna().all(axis=1).sum()
    model = mr.NeymanPearsonClassifier(
        None, 0.1, controlled_class="well", missingness={"well": phi}, random_state=0
    ).fit(X, y)
    assert mr.power(y, model.predict(Z), controlled_class="well") > 0.3
    assert "from_columns({'number': (-1.0, 1.0)})" in str(model.certificate_)
    plain = mr.NeymanPearsonClassifier(None, 0.1, controlled_class="well").fit(Z, y)
    scores = plain.score_samples(Z), Z["number"]
    both, alone = (roc_auc_score(y == "sick", each) for each in scores)
    assert both > alone
    assert "word" in mr.build_report(model, X, y).markdown()
    several = clone(model).set_params(columns="auto").fit(X, y)
    assert {"word", "number"} >= set(several.columns_)
    # Trees take categories as such: one in the middle of the alphabet stands out.
    trees = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    ratio = mr.ClassifierRatio(trees)
    within = clone(model).set_params(estimator=ratio).fit(X, y)
    assert mr.power(y, within.predict(Z), controlled_class="well") > 0.2
    ratio.fit(Z, y)
    assert ratio.estimator_.is_categorical_.tolist() == [True, False]
    np.testing.assert_array_equal(
        ratio.predict_ratio(pl.from_pandas(Z)), ratio.predict_ratio(Z)
    )
    # What takes them by their type can be kept, as trees can that split by them.
    encoder = ColumnTransformer(
        [("word", OneHotEncoder(), make_column_selector(dtype_exclude=np.number))],
        remainder="passthrough",
    )
    for each in [encoder, trees][: 1 + (kind == "category")]:
        line = make_pipeline(each, LogisticRegression())
        kept = clone(model).set_params(estimator=each if each is trees else line)
        mr.save_model(kept.fit(X, y), tmp_path / "kept.skops", force=True)
        again = mr.load_model(tmp_path / "kept.skops")
        np.testing.assert_array_equal(again.score_samples(Z), kept.score_samples(Z))


def test_the_default_estimator_takes_weights_groups_several_classes_and_any_phi():
    data, y = words_and_numbers()
    X = pd.DataFrame({"number": data["number"], "age": np.arange(1200.0) % 100})
    options = {"controlled_class": "well", "random_state": 0}
    rng = np.random.default_rng(1)
    # Numbers say one thing of the young, and the opposite of the old.
    young = X["age"] < 50
    turned = X.assign(number=np.where(young, X["number"], -X["number"]))
    for counted, sign in ((young, 1.0), (~young, -1.0)):
        model = mr.NeymanPearsonClassifier(None, 0.1, **options)
        model.fit(turned, y, sample_weight=np.where(counted, 1.0, 1e-9))
        scores = model.score_samples(turned)
        assert sign * np.corrcoef(scores, turned["number"])[0, 1] > 0.5
    groups = rng.choice(["north", "south"], 1200)
    grouped = mr.GroupedNeymanPearsonClassifier(alpha=0.1, **options)
    assert set(grouped.fit(X, y, groups).thresholds_) == {"north", "south"}
    several = mr.MulticlassNeymanPearsonClassifier(alpha={"well": 0.2}, random_state=0)
    several.fit(X, np.where(X["age"] > 90, "old", y))
    assert set(several.predict(X)) == {"well", "sick", "old"}
    # φ of one column that depends on another: complete rows are weighted.
    phi = mr.LogisticMissingness.from_columns({"number": (-3.0, {"age": 0.04})})
    well = y == "well"
    lossy = X.copy()
    lossy[well] = mr.corrupt(X[well], phi, random_state=0)
    models = {"missingness": {"well": phi}}
    model = mr.NeymanPearsonClassifier(None, 0.1, **options, **models).fit(lossy, y)
    assert mr.power(y, model.predict(X), controlled_class="well") > 0.2
    with pytest.raises(ValueError, match="MulticlassNeymanPearsonClassifier"):
        model.fit(X, np.where(X["age"] > 90, "old", y))


NUMBERS = pd.DataFrame({"a": np.arange(400.0) % 7, "b": np.arange(400.0)})
HALVES = np.arange(400) % 2


@pytest.mark.parametrize(
    ("X", "y", "options", "match"),
    [
        (NUMBERS[:0], pd.Series([], dtype=object), {}, "y has no labels"),
        (NUMBERS.set_axis(["a", "a"], axis=1), HALVES, {}, "Rename columns of X that"),
        (pl.from_pandas(NUMBERS).lazy(), HALVES, {}, r"give X\.collect\(\)"),
        (NUMBERS.assign(b=np.inf), HALVES, {}, "infinity at row 0, column 'b'"),
        (NUMBERS.assign(b=pd.Timestamp(0)), HALVES, {}, "of dates such as the days"),
        (NUMBERS, HALVES, {"alpha": 5}, r"got 5\. Write 0\.05 for 5%"),
        (NUMBERS, HALVES, {"calibration_size": 1.0}, r"leaves some: 1\.0 is neither"),
    ],
)
def test_the_first_mistakes_are_refused_in_words_of_the_user(X, y, options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        mr.NeymanPearsonClassifier(**options).fit(X, y)


@pytest.mark.parametrize("labels", [HALVES, HALVES > 0, np.array(["a", "b"] * 200)])
def test_a_curve_is_drawn_of_scores_and_not_of_labels(labels):
    with pytest.raises(ValueError, match="looks like labels"):
        mr.np_roc(labels, np.linspace(0.0, 1.0, 400))


def test_labels_and_numbers_are_what_the_user_means_by_them():
    data, y = words_and_numbers()
    X = pd.DataFrame({"number": data["number"]})
    model = mr.NeymanPearsonClassifier(alpha=0.1, random_state=0)
    labels = model.fit(X, pd.Series((y == "sick") * 1, dtype="Int64")).predict(X)
    assert labels.dtype.kind == "i"
    assert model.fit(X, y == "sick").certificate_.controlled_class is False
    # Numbers that are stored as texts.
    model.fit(X.astype(str), y == "sick")
    np.testing.assert_array_equal(model.predict(X), labels == 1)
    # No rows have no labels, and a φ for other columns is refused by the user's label.
    words = pd.DataFrame(data)
    model.set_params(deployment="as-observed").fit(words, y == "sick")
    assert model.predict(words[:0]).shape == (0,)
    wide = {"well": mr.LogisticMissingness([-1.0] * 3, [0.0] * 3)}
    lossy = X.mask((X["number"] > 2.0) & (y == "well"))
    with pytest.raises(ValueError, match=r"Class 'well': Log.* is for 3 feature"):
        mr.NeymanPearsonClassifier(
            alpha=0.1, controlled_class="well", missingness=wide
        ).fit(lossy, y)
    constant = mr.LogisticMissingness.from_columns({"number": (0.0, {})})
    assert constant.missing_probability(X[:1]).tolist() == [[0.5]]
