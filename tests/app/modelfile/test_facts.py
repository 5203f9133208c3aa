"""A model of which one fact was changed alone is refused.

Models are changed after they were loaded, so that every check is reached.
"""

import copy
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from classifiers import certified
from forging import MODELS, PHI, forged, sound
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_array

from missratio._files.cells import Cells
from missratio.app.modelfile import ModelFileError
from missratio.app.modelfile.checks import check_model, header_of
from missratio.app.tables.columns import TableColumn


def refused(model, match="It holds no sound model"):
    with pytest.raises(ModelFileError, match=match) as caught:
        check_model(model, {})
    # Not by its header, which is empty here and looked at last.
    assert "header" not in str(caught.value)


def accepted(model):
    check_model(model, json.loads(json.dumps(header_of(model))))


@pytest.mark.parametrize("kind", MODELS)
def test_what_was_not_changed_is_sound(kind):
    accepted(sound(kind))


def test_no_report_and_as_many_imputations_as_are_allowed_are_sound():
    accepted(forged("table", "report", None))
    accepted(forged("imputed", "estimator_.imputer.n_imputations", 10_000))
    rows = np.random.default_rng(0).normal(size=(200, 70))
    accepted(certified(alpha=0.5).fit(rows, np.arange(200) % 2))


def moved(x):
    return x + 1.0


def columns(*names_and_levels):
    return tuple(TableColumn(*each) for each in names_and_levels)


CERTIFICATE = {
    "alpha": ["x", 0.31, 0.0, 1.5], "delta": [None, 0.06, -0.1], "rule": [5, "paper"],
    "deployment": [None, "as-observed"], "rows": [2.5, 121], "observed": ["7", 121],
    "effective_rows": ["x", 1e6], "threshold": [None, np.nan, np.inf, moved],
    "estimated_error": ["0", 0.0], "error_bound": [None, 0.01], "certified": [1, False],
    "assumptions": [[]], "missingness_delta": ["0"], "controlled_class": [7, 1],
    "other_class": [7],
}  # fmt: skip
TWO = {
    **{f"certificate_.{name}": values for name, values in CERTIFICATE.items()},
    "certificate_": [None], "alpha": [0.31], "delta": [0.06], "threshold_": [moved],
    "classes_": [[0, 1], np.array([0, 1, 2]), np.array([0, 0])],
    "controlled_class": [1, 7], "deployment": ["as-observed"],
    "calibration_": [None], "calibration_.rule": ["auto"],
    "calibration_.sample": [5], "calibration_.sample.values": [moved, list],
    "calibration_.trust.delta": ["1"], "calibration_.trust.cap": ["1"],
    "calibration_.trust.odds_factor": ["1"], "calibration_.trust.model": [5],
    "missingness": [{0: "φ"}], "missingness.0.learned": [True], "odds_factor": [2.0],
    "n_features_in_": [0, "2", 10**6 + 1], "_sign": [0.0, 0.5, -0.3],
}  # fmt: skip
TABLE = {
    "classifier": [LogisticRegression(), None], "encoder": [None],
    "classifier.calibration_.trust.cap": [0.0, 2.0],
    "encoder.cells": [None, Cells(("\ud800",)), Cells(merged=(("a", "\ud800"),))],
    "target": [5], "method": [None], "report": [5],
    "encoder.columns": [
        ("p", "q"), columns((1,), ("q",)), columns(("p",)), columns(("p",), ("p",)),
        columns(("p", ("u", "v")), ("q",)), columns(("p",), ("q", ("u", "u"))),
        columns(("p",), ("q", ("u", 1))),
    ],
    "dropped": [[], (5,)], "rest": [["b"], (5,)], "group_column": ["who"],
    "training": [None], "training.file": [5], "training.sha256": [5],
    "training.rows": [{0: 300}], "training.rows.0": [119.0],
    "training.missing.0": [{"p": 1.0}],
}  # fmt: skip
FIRST = "certificate_.certificates.0"
PROMISE = {
    FIRST: [5], f"{FIRST}.controlled_class": [7], f"{FIRST}.alpha": [0.1, 0.41],
    f"{FIRST}.delta": [0.03], f"{FIRST}.rows": [9], f"{FIRST}.other_class": [(7,)],
    f"{FIRST}.deployment": ["as-observed"], f"{FIRST}.threshold": [-9.0, np.nan],
}  # fmt: skip
SEVERAL = {
    **PROMISE, f"{FIRST}.certified": [False], f"{FIRST}.error_bound": [0.41],
    f"{FIRST}.threshold": [moved, lambda t: t - 1.0, np.nan],
    "certificate_": [None], "delta": [0.06], "alpha": [0.3, {0: 0.4}],
    "classes_": [[0, 1, 2], np.array([[0, 1, 2]]), np.array([0, 1, 1]), np.array([0])],
    "certificate_.delta": [0.5], "certificate_.order": [(0, 1, 2)],
    "certificate_.fallback": [7, 1],
    "certificate_.certificates": [list, lambda c: c[:1], lambda c: (*c, c[0])],
    "calibrations_": [list, lambda c: {0: c[0]}, lambda c: dict(reversed(c.items()))],
    "calibrations_.0.sample.values": [moved],
    "calibrations_.0.trust.cap": [2.0], "calibrations_.0.trust.model": [5],
    "decision_": [None], "decision_.bounded": [(0, True), (0, 3), (1, 0), (0, -2)],
    "decision_.fallback": [3, 2, -3],
    "decision_.offsets": [list, lambda x: x[:2], lambda x: x * np.nan],
    "decision_.thresholds": [list, lambda x: x[:2], moved, lambda x: x * np.nan],
    "scores_": [None], "scores_.n_classes": [4],
    "caps_": [None, lambda _: {1: sound("capped").caps_[1]}],
}  # fmt: skip
GROUPS = {
    **PROMISE, f"{FIRST}.error_bound": [0.1],
    "certificate_": [None], "classes_": [[0, 1], np.array([0, 1, 2])],
    "certificate_.certificates": [list, lambda c: c[:1]],
    "certificate_.delta": [0.5],
    "calibrations_": [lambda c: c[:1], lambda c: c[::-1]],
    "calibrations_.0.sample.values": [moved], "calibrations_.0.trust.cap": [2.0],
    "controlled_class": [7, 1], "delta": [0.1],
    "n_features_in_": [None],
    "groups_": [["a"], ["b", "a"], ["a", "a"]], "alpha": [0.1],
    "group_alpha": [{"a": 0.1}],
}  # fmt: skip
TRANSFORMER = "estimator_.steps.0.1"
ENCODER = f"{TRANSFORMER}.transformers_.1.1"
FACTS = {
    "φ": TWO, "table": TABLE, "several": SEVERAL, "groups": GROUPS,
    "classes": {"classifier": [lambda _: sound("φ")]},
    "ratios": {"scores_.classes": [(1, 1)], "scores_.estimators": [lambda e: e[:1]],
               "scores_.reference": [1, 3]},
    "order": {"decision_": [lambda _: sound("several").decision_],
              "decision_.order": [(0, 2, 1), (0, 1)], "order": [[0, 2, 1], [0, 1]],
              f"{FIRST}.other_class": [(2, 1), (2,)]},
    "capped": {"caps_": [{}], "caps_.1.cap": [9.0], "caps_.1.model": [None],
               "caps_.1.odds_factor": [0.5]},
    "grouped table": {"group_column": ["where", None], "rest": [(5,)]},
    "tuned": {"calibration_.rule.training": [5]},
    "words": {f"{TRANSFORMER}.n_jobs": [10**6, "x", -2],
              f"{TRANSFORMER}.transformers_": [[], lambda t: t[:1]],
              f"{TRANSFORMER}.transformers_.1.2": [["p"]],
              f"{ENCODER}.categories_": [[], lambda c: [np.repeat(c[0], 99)],
                                         [np.arange(3)[::-1]]],
              f"{ENCODER}._n_features_outs": [[2], [9], [-1]],
              f"{ENCODER}._infrequent_indices": [[np.array([7])]],
              f"{ENCODER}._default_to_infrequent_mappings": [[np.array([0, 1, 9])]],
              f"{ENCODER}.drop_idx_": [np.array([0])],
              f"{ENCODER}._drop_idx_after_grouping": [np.array([0])],
              f"{ENCODER}.dtype": ["eval"]},
    "beyond": {"calibration_.trust.cap": [None, 0.5, 1e9],
               "calibration_.trust.odds_factor": [1.5],
               "calibration_.trust.model": [lambda _: PHI],
               "calibration_.sample.bound": [moved]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        pytest.param(kind, path, value, id=f"{kind} {path} {place}")
        for kind, facts in FACTS.items()
        for path, values in facts.items()
        for place, value in enumerate(values)
    ],
)
def test_a_fact_that_was_changed_alone_is_refused(kind, path, value):
    refused(forged(kind, path, value))


def leading(field, value):
    """Nodes of a tree of which the first has another value."""

    def change(nodes):
        assert nodes["is_leaf"][0] == 0
        changed = nodes.copy()
        changed[field][0] = value
        return changed

    return change


IMPUTER = "estimator_.imputer_"
TREES = {"trees": "estimator_.steps.1.1", "imputed": "estimator_.estimators_.0",
         "order": "scores_.estimators.0"}  # fmt: skip
NODES = [
    lambda nodes: nodes[:0], leading("left", 10**6), leading("left", 0),
    leading("right", 0), leading("feature_idx", 1000), leading("feature_idx", -1),
    leading("feature_idx", -(10**12)), leading("is_categorical", 1),
    leading("value", np.nan),
]  # fmt: skip
BY_CATEGORY = {
    "_predictors.0.0.nodes": (*NODES[:-2], leading("bitset_idx", 9),
                              leading("feature_idx", 1)),
    **{f"_predictors.0.0.{name}_left_cat_bitsets": (
        lambda sets: sets[:0], lambda sets: sets[:, :7].copy(),
        lambda sets: sets.astype(np.uint64), lambda sets: sets[:, ::-1],
    ) for name in ("raw", "binned")},
    "_predictors.0.0": (LogisticRegression(),), "_in_fit": (True,),
    "_bin_mapper.is_categorical_": (np.ones(2), np.zeros(2), np.array([0, 1])),
    "is_categorical_": (None, np.array([True]), np.array([1, 0]), np.array([0, 1]) > 0),
    "_preprocessor": (None, LogisticRegression()),
    "_preprocessor.transformers_": (lambda t: t[:1], lambda t: [t[0], *t]),
    "_preprocessor.transformers_.2.1": ("passthrough",),
    "_preprocessor.transformers_.0.2": (np.array([True, True]),),
    "_preprocessor._transformer_to_input_indices": ({"encoder": [0], "numerical": []},),
    "_preprocessor.transformers_.0.1.dtype": ("U100000000", "eval"),
    "_preprocessor.transformers_.1.1.kw_args": ({"dtype": "U100000000"},),
    "_preprocessor.transformers_.1.1.func": (
        "x", lambda _: check_array, lambda _: partial(np.zeros, 10**12),
        lambda _: partial(check_array, dtype="U100000000"),
        lambda known: partial(known.func, ensure_2d=False, **known.keywords),
    ),
}  # fmt: skip
HARMFUL = [
    *(("categories", f"estimator_.{path}", value,
       ": its trees|: a tree|run a function|: its categories|'eval' not understood")
      for path, values in BY_CATEGORY.items() for value in values),
    *((kind, path, "x", "takes a method's place") for kind, path in (
        ("table", "decide"), ("φ", "predict"), ("classes", "classifier.class_scores"),
        ("trees", "estimator_.predict_proba"),
        ("trees", f"{TREES['trees']}._preprocess_X"),
    )),
    *(("imputed", f"{IMPUTER}.{name}", value, f"{name} is")
      for name in ("n_imputations", "n_rounds")
      for value in (10_001, 10**9, 0, -1, 2.5, "3", None)),
    ("imputed", f"{IMPUTER}._redraw_seed.pool_size", 2**33, "its seed is none"),
    *((kind, f"{path}.n_features_in_", None, "its trees are for other columns")
      for kind, path in TREES.items()),
    *((kind, f"{path}._predictors.0.0.nodes", change, ": a tree")
      for kind, path in TREES.items() for change in NODES),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "path", "value", "match"), HARMFUL)
def test_what_would_crash_hang_or_mislead_is_refused_by_name(kind, path, value, match):
    refused(forged(kind, path, value), match)


@pytest.mark.parametrize("name", ["alpha", "delta"])
@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, -0.1])
def test_levels_that_are_none_are_refused_though_they_agree(name, level):
    model = forged("φ", f"certificate_.{name}", level)
    setattr(model, name, level)
    refused(model, f"{name} must lie strictly between 0 and 1")


@pytest.mark.parametrize(
    ("rows", "more", "match"),
    [
        (10**10, 10**10, "more rows than can be tested"),
        (5 * 10**6, 5 * 10**6, "more rows than can be tested"),
        (10**10, 0, "look-ups are not what it says"),
        (0, 10**10, "look-ups are not what it says"),
    ],
)
def test_look_ups_of_more_rows_than_there_are_are_refused(rows, more, match):
    """Their exact test has tables of as many rows as may lie above a threshold."""
    sample = sound("looked up").calibration_.sample
    lookups = replace(sample.lookups, incomplete=sample.lookups.incomplete + more)
    wrong = replace(sample, n_rows=sample.n_rows + rows, lookups=lookups)
    model = forged("looked up", "calibration_.sample", wrong)
    model.certificate_ = replace(model.certificate_, rows=wrong.n_rows)
    refused(model, match)


def without_scores(model):
    """Of a class whose scores are NaN."""

    class Silent(type(model)):
        pass

    for name, width in {"score_samples": 1, "class_scores": 3}.items():
        scores = np.full((3, width), np.nan).squeeze()
        setattr(Silent, name, lambda self, X, scores=scores: scores)
    new = copy.copy(model)
    new.__class__ = Silent
    return new


@pytest.mark.parametrize("kind", ["φ", "several", "groups"])
def test_a_model_that_gives_no_scores_is_refused(kind):
    refused(without_scores(sound(kind)), "it gives no scores")


def test_a_row_above_the_cap_of_its_class_may_have_no_scores():
    accepted(without_scores(sound("capped")))
