"""Experiments on data sets: the threshold's two readings, and each data set's run."""

from dataclasses import replace

import numpy as np
import pytest

from missratio.reproduce import EXPERIMENTS, Conditions
from missratio.reproduce._real import load_table, power
from missratio.reproduce._runs import SplitSizes

QUICK = ("M-KLIEP (known)", "M-KLIEP (learned)", "CC-KLIEP")


def test_published_counts_scores_at_the_threshold_and_corrected_does_not():
    calibration, test = np.repeat([0.0, 1.0], [180, 20]), np.repeat([0.0, 1.0], 50)
    scores = (calibration, test)
    assert power(scores, 0.2, strict=False) == 1.0
    assert power(scores, 0.2, strict=True) == 0.5


def test_too_few_calibration_rows_give_no_power():
    assert power((np.arange(5.0), np.arange(10.0)), 0.1, strict=False) == 0.0


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("name", ["fire_vary_alpha", "fire_vary_missing"])
def test_fire_runs_on_a_table_of_the_documented_columns(fire_file, name, variant):
    experiment = EXPERIMENTS[name]
    assert experiment.procedure.unavailable() is None
    procedure = replace(experiment.procedure, sizes=SplitSizes(200, 50, 10))
    values = procedure.measure(
        experiment.x[1:3], range(2), experiment.methods, Conditions(variant)
    )
    assert set(values) == set(experiment.methods)
    for own in values.values():
        assert own.shape == (2, 2)
        assert ((own >= 0) & (own <= 1)).all()


def test_fire_has_the_papers_sizes():
    sizes = EXPERIMENTS["fire_vary_alpha"].procedure.sizes
    assert 44_757 - sizes.train_rows == 24_757
    assert 17_873 - sizes.test_rows == 12_873
    assert sizes.queries == 50
    assert EXPERIMENTS["fire_vary_missing"].procedure.sizes.queries == 10


def test_the_fingerprint_is_of_values_and_classes(fire_file):
    procedure = EXPERIMENTS["fire_vary_alpha"].procedure
    published, corrected = (
        procedure.fingerprint(Conditions(variant))
        for variant in ("published", "corrected")
    )
    assert published != corrected
    assert procedure.fingerprint(Conditions(seed=1)) == published


def test_without_its_file_an_experiment_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MISSRATIO_DATA", str(tmp_path))
    why = EXPERIMENTS["fire_vary_alpha"].procedure.unavailable()
    assert "smoke_detection_iot.csv" in why
    assert "missratio data fetch fire" in why


@pytest.mark.data
@pytest.mark.parametrize(
    ("variant", "controlled", "calibration"),
    [("published", 474, 237), ("corrected", 471, 234)],
)
def test_ctg_has_the_papers_sizes(variant, controlled, calibration):
    procedure = EXPERIMENTS["ctg_vary_alpha"].procedure
    table = load_table("ctg", corrected=variant == "corrected")
    assert [len(rows) for rows in table.rows] == [controlled, 1655]
    run = procedure.draw(None, range(1), Conditions(variant))[0]
    parts = run.denominator, run.calibration, run.numerator, run.test
    assert [len(part) for part in parts] == [237, calibration, 1555, 100]


@pytest.mark.data
@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_weights_beat_complete_cases_on_the_data_sets(variant):
    for name, point, runs in [
        ("ctg_vary_missing", 0.8, 20),
        ("weather_vary_missing", 0.5, 1),
    ]:
        values = EXPERIMENTS[name].procedure.measure(
            [point], range(runs), QUICK, Conditions(variant)
        )
        means = {method: own.mean() for method, own in values.items()}
        assert means["CC-KLIEP"] < means["M-KLIEP (learned)"]
        assert means["CC-KLIEP"] < means["M-KLIEP (known)"]


@pytest.mark.data
def test_points_of_alpha_share_their_runs():
    procedure = EXPERIMENTS["ctg_vary_alpha"].procedure
    values = procedure.measure([0.05, 0.1, 0.3], range(3), QUICK, Conditions())
    alone = procedure.measure([0.1], range(1, 2), QUICK, Conditions())
    for method in QUICK:
        assert (np.diff(values[method], axis=1) >= 0).all()
        np.testing.assert_allclose(alone[method][0, 0], values[method][1, 1])


@pytest.mark.data
def test_each_correction_changes_what_it_mends_and_nothing_else():
    procedure = EXPERIMENTS["ctg_vary_missing"].procedure

    def values(variant):
        return procedure.measure([0.6], range(4), QUICK, Conditions(variant))

    published = values("published")
    learning = values("learning")
    known, learned = QUICK[:2]
    np.testing.assert_array_equal(learning[known], published[known])
    assert (learning[learned] != published[learned]).any()
    # The number of rows differs, and with it every split.
    assert (values("data")[known] != published[known]).any()
    strict = values("threshold")
    assert all((strict[method] <= published[method]).all() for method in QUICK)


def test_corrections_leave_simulations_alone():
    experiment = EXPERIMENTS["naive_bayes"]
    both = [
        experiment.procedure.measure([0.5], range(3), ["M-KLIEP"], Conditions(variant))
        for variant in ("published", "corrected")
    ]
    np.testing.assert_array_equal(both[0]["M-KLIEP"], both[1]["M-KLIEP"])
