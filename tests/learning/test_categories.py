"""A category's indicators go missing together: one φ over the levels."""

import learning_table as simulation
import numpy as np
import pytest
from classifiers import certified
from data import stacked
from scipy.special import expit

import missratio as mr
from missratio.learning import LearnedMissingness
from missratio.missingness import Block, BlockMissingness
from missratio.weights import complete_row_weights


def category_model():
    """Two indicators of three levels; the number beside them goes missing by itself."""
    ward = mr.LogisticMissingness(-1.0, [0.5, 1.5], rowwise=True)
    base = mr.LogisticMissingness([-1.0, -np.inf, -np.inf], [1.0, 0.0, 0.0])
    return BlockMissingness(base, (Block((1, 2), (1, 2), ward),), 3)


def complete_table(n, seed=0):
    rng = np.random.default_rng(seed)
    level = rng.integers(3, size=n)
    return np.column_stack([rng.normal(size=n) + level, np.eye(3)[level][:, 1:]])


def test_indicators_are_lost_together_and_weigh_once():
    Z, phi = complete_table(40_000), category_model()
    X = mr.corrupt(Z, phi, random_state=0)
    lost = np.isnan(X)
    np.testing.assert_array_equal(lost[:, 1], lost[:, 2])
    # Entry by entry, and as rows, weights have mean one.
    weights = phi.weights(X)
    np.testing.assert_allclose(weights.mean(axis=0), 1.0, atol=0.03)
    whole = complete_row_weights(X, phi)
    np.testing.assert_allclose(whole, weights[:, 0] * weights[:, 1])
    assert abs(whole.mean() - 1.0) < 0.03
    # To count the block twice would not do.
    assert weights.prod(axis=1).mean() > 1.3


def test_a_known_block_is_not_contradicted_and_a_wrong_one_is():
    phi = category_model()
    X = mr.corrupt(complete_table(4000), phi, random_state=0)
    checks = mr.missingness_check(X, phi, complete=True)
    assert {check.verdict for check in checks} == {"consistent"}
    ward = mr.LogisticMissingness(-1.0, [1.5, 0.5], rowwise=True)
    wrong = BlockMissingness(phi.base, (Block((1, 2), (1, 2), ward),), 3)
    verdicts = {check.verdict for check in mr.missingness_check(X, wrong)}
    assert "contradiction" in verdicts


@pytest.mark.parametrize("dropped", [False, True])
def test_levels_are_learned_from_the_table(dropped):
    outcome = simulation.category(0, dropped=dropped)
    model = outcome.model
    assert isinstance(model, BlockMissingness)
    assert isinstance(model.base, LearnedMissingness)
    (block,) = model.blocks
    assert len(block.columns) == 3 - dropped
    assert len(block.inputs) == 2
    np.testing.assert_allclose(outcome.learned, outcome.truth, atol=0.12)
    assert outcome.covered
    kinds = {check.kind for check in block.model.checks}
    assert {"form", "other columns", "instrument"} <= kinds
    assert not any(check.failed for check in model.checks)


def test_looked_up_levels_add_to_it():
    alone, both = (simulation.category(3, n_revealed=m) for m in (0, 150))
    errors = [o.model.blocks[0].model.standard_errors[1:].mean() for o in (alone, both)]
    assert errors[1] < errors[0]


def test_where_nothing_predicts_a_category_counts_bound_its_levels():
    # A column that says nothing leaves slopes open; but no more than all of the missing
    # values are of one level, so φ stays below that, and it holds the truth.
    rng, (base, ward) = np.random.default_rng(0), np.log([0.04, 3.0])
    covered, widest = [], 0.0
    for seed in range(10):
        Z = np.column_stack([complete_table(900, seed)[:, 1:], rng.normal(size=900)])
        phi = mr.LogisticMissingness(base, [0.0, ward], rowwise=True)
        lost = rng.uniform(size=900) < phi.missing_probability(Z[:, :2])
        Z[lost, :2] = np.nan
        model = simulation.learn(Z, None)
        levels = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        lower, upper = (each[:, 0] for each in model.probability_band(levels, 0.1))
        truth = phi.missing_probability(levels[:, :2])
        covered.append(((lower <= truth) & (truth <= upper)).all())
        widest = max(widest, upper.max())
    assert np.mean(covered) >= 0.9
    assert widest < 0.3


def test_a_certificate_rests_on_a_learned_category():
    rng = np.random.default_rng(0)
    Z, phi = complete_table(6000), category_model()
    Z = np.column_stack([Z, Z[:, 1] - Z[:, 2] + 0.3 * rng.normal(size=len(Z))])
    lossy = mr.corrupt(Z[:, :3], phi, random_state=0)
    other = Z[:1500].copy()
    other[:, 0] += 1.5
    X, y = stacked(np.column_stack([lossy, Z[:, 3]]), other)
    learned = {0: mr.learn_missingness(X[y == 0])}
    classifier = certified(mr.KLIEP(), alpha=0.2, delta=0.05, missingness=learned)
    classifier.fit(X, y)
    assert classifier.certificate_.certified
    fresh = complete_table(50_000, seed=5)
    third = fresh[:, 1] - fresh[:, 2] + 0.3 * rng.normal(size=len(fresh))
    assert classifier.predict(np.column_stack([fresh, third])).mean() < 0.2
    ratio = mr.KLIEP(missingness=learned).fit(X, y)
    uncertainty = mr.ratio_uncertainty(ratio, X, y)
    assert uncertainty.learned_on == {0: "other"}
    assert np.isfinite(uncertainty.standard_errors).all()


def test_numbers_that_go_missing_together_are_no_category():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4)) + rng.normal(size=(800, 1))
    X[rng.uniform(size=800) < 0.3, :2] = np.nan
    with pytest.warns(UserWarning, match="same rows"):
        model = mr.learn_missingness(X)
    assert isinstance(model, LearnedMissingness)


@pytest.mark.parametrize("kind", ["str", "category", "polars"])
def test_words_teach_as_their_indicators_do_and_a_category_has_a_phi_by_word(kind):
    pd, pl = map(pytest.importorskip, ("pandas", "polars"))
    rng, words = np.random.default_rng(0), np.array(["high", "low", "mid"])
    place = rng.integers(3, size=4000)
    number = rng.normal(size=(4000, 2)) + place[:, None]
    chance = expit(number[:, 0] - 2.0), np.array([0.5, 0.2, 0.05])[place]
    number[rng.random(4000) < chance[0], 0] = np.nan
    lost = rng.random(4000) < chance[1]
    indicators = {f"word={x}": (place == k) * 1.0 for k, x in enumerate(words)}
    numbers = {"a": number[:, 0], "b": number[:, 1]}
    # 1. Words without blanks.
    frame = pd.DataFrame({"word": words[place], **numbers})
    frame = pl.from_pandas(frame) if kind == "polars" else frame.astype({"word": kind})
    phi = mr.learn_missingness(frame)
    wide = mr.learn_missingness(pd.DataFrame({**indicators, **numbers}))
    np.testing.assert_allclose(phi.coef, [0.0, *wide.coef[3:]])
    by_place, by_name = (
        mr.learn_missingness(frame, depends_on=[x]).blocks[0] for x in (2, "b")
    )
    assert by_place.inputs == by_name.inputs == (1, 2)
    np.testing.assert_array_equal(by_place.model.coef, by_name.model.coef)
    assert phi.feature_names == ("word", "a", "b")
    if kind != "category":
        texts = pd.DataFrame({"word": pd.Series(words[place]).mask(lost), **numbers})
        with pytest.raises(ValueError, match=r"astype\({'word': 'category'}\)"):
            mr.learn_missingness(texts)
        return
    # 2. Words with blanks are one column, whichever rows are asked about.
    blank = frame.assign(word=frame["word"].mask(lost))
    phi = mr.learn_missingness(blank)
    lossy = {name: np.where(lost, np.nan, x) for name, x in indicators.items()}
    wide = mr.learn_missingness(pd.DataFrame({**lossy, **numbers}))
    for delta in (None, 0.05):
        narrow = phi.probability_band(frame[:50], delta)
        full = wide.probability_band(
            pd.DataFrame({**indicators, **numbers})[:50], delta
        )
        np.testing.assert_allclose(np.array(narrow)[..., 0], np.array(full)[..., 0])
    assert np.isnan(phi.missing_probability(blank)[lost, 0]).all()
    one = phi.missing_probability(frame[place == 2][:1])
    np.testing.assert_array_equal(one[0], phi.missing_probability(frame)[place == 2][0])
    with pytest.raises(ValueError, match="depends_on takes columns of numbers"):
        mr.learn_missingness(frame, depends_on=["word"])
