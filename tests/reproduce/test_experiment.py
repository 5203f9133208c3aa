"""Experiments as data, and draws that are named and not counted."""

import numpy as np
import pytest

from missratio.reproduce import EXPERIMENTS, Conditions, chosen
from missratio.reproduce._experiment import fits_of

IDS = [
    "msd_5dim", "np_boundary", "np_power", "naive_bayes", "diff_variance",
    "misspecification", "ctg_vary_alpha", "ctg_vary_missing", "fire_vary_alpha",
    "fire_vary_missing", "weather_vary_alpha", "weather_vary_missing",
]  # fmt: skip


def test_every_experiment_of_the_paper_is_there():
    assert [each.id for each in EXPERIMENTS.values() if each.methods] == IDS


def test_what_the_paper_has_not_got_is_all_past_it():
    others = [name for name in EXPERIMENTS if name not in IDS]
    assert others == ["naive_bayes_large"]
    assert EXPERIMENTS["naive_bayes_large"].beyond


def test_an_error_is_made_of_the_fits_of_its_curve():
    for experiment in EXPERIMENTS.values():
        assert {fits_of(method) for method in experiment.beyond} <= {*experiment.curves}


def test_runs_and_confidence_are_the_papers():
    runs = [EXPERIMENTS[name].runs for name in IDS]
    assert runs == [100, 1, 100, 100, 100, 100, 1000, 1000, 100, 100, 100, 30]
    assert EXPERIMENTS["np_power"].z == pytest.approx(2.576, abs=1e-3)
    assert EXPERIMENTS["ctg_vary_alpha"].z == pytest.approx(1.96, abs=1e-3)


def test_points_that_share_their_fits_are_one_block():
    assert len(EXPERIMENTS["ctg_vary_alpha"].blocks) == 1
    assert len(EXPERIMENTS["ctg_vary_missing"].blocks) == 10


def test_a_generator_depends_on_its_name_and_the_seed_alone():
    def draw(seed, *key):
        return Conditions(seed=seed).generator(*key).random(3)

    draw(0, "np_power", "200", 7)
    np.testing.assert_array_equal(draw(0, "np_power", 1), draw(0, "np_power", 1))
    for other in [(1, "np_power", 1), (0, "np_power", 2), (0, "msd_5dim", 1)]:
        assert (draw(*other) != draw(0, "np_power", 1)).all()


def test_choices_come_in_their_own_order_whatever_the_capitals():
    assert chosen(["b", "A"], ["a", "B"], "letter") == ["a", "B"]


def test_an_unknown_choice_is_refused_with_the_nearest_and_all():
    with pytest.raises(ValueError, match=r"'np_pwer'. Did you mean 'np_power'\?.*msd"):
        chosen(["np_pwer"], IDS, "experiment")
