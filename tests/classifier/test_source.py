"""A classifier keeps its promise on rows that are read block by block."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from optional_packages import optional
from sklearn.linear_model import LogisticRegression

import missratio as mr
from missratio.classifier import reading as split

pd = optional("pandas")

pytestmark = pytest.mark.usefixtures("blockwise")

NAMES = ["a", "b"]


def labelled(rng, n_rows):
    y = rng.integers(0, 2, n_rows)
    return rng.normal(size=(n_rows, 2)) + 1.2 * y[:, None], y


def write(path, X, y):
    columns = {
        name: pa.array(X[:, j], from_pandas=True) for j, name in enumerate(NAMES)
    }
    pq.write_table(pa.table({**columns, "y": y}), path, row_group_size=900)
    return mr.scan_parquet(path, target="y")


PHI = {0: mr.LogisticMissingness([-2.0, -3.0], [0.4, 0.3])}


@pytest.mark.parametrize("missingness", [None, PHI], ids=["complete", "missing"])
def test_the_error_exceeds_alpha_as_often_as_delta_allows(missingness, tmp_path):
    alpha, delta, n_repeats = 0.1, 0.2, 20
    rng = np.random.default_rng(1)
    fresh = rng.normal(size=(20_000, 2))
    broken = 0
    for repeat in range(n_repeats):
        X, y = labelled(rng, 1500)
        if missingness is not None:
            X[y == 0] = mr.corrupt(X[y == 0], PHI[0], random_state=repeat)
        classifier = mr.NeymanPearsonClassifier(
            mr.KLIEP(), alpha, delta, missingness=missingness, random_state=repeat
        ).fit(write(tmp_path / "t.parquet", X, y))
        error = np.mean(classifier.predict(pd.DataFrame(fresh, columns=NAMES)) == 1)
        broken += error > alpha
    assert broken / n_repeats <= delta + 3 * np.sqrt(delta * (1 - delta) / n_repeats)


def test_rows_to_calibrate_on_are_not_fitted_on(tmp_path):
    rng = np.random.default_rng(0)
    X, y = labelled(rng, 3000)
    source = write(tmp_path / "t.parquet", X, y)
    rest, _, _, (held, *_) = split.hold_out(source, 0, 0.3, seed=5)
    _, _, _, (again, *_) = split.hold_out(source, 0, 0.3, seed=5)
    np.testing.assert_array_equal(held, again)
    kept = []
    rest.fold(lambda block: kept.append(block.rows) or 0, sum)
    both = np.concatenate([held, *kept])
    assert len(both) == len(X)
    assert len(np.unique(both, axis=0)) == len(X)
    share, n_controlled = len(held) / np.sum(y == 0), np.sum(y == 0)
    assert abs(share - 0.3) < 4 * np.sqrt(0.21 / n_controlled)


def test_what_cannot_stream_is_refused(tmp_path):
    source = write(tmp_path / "t.parquet", *labelled(np.random.default_rng(0), 500))
    with pytest.raises(TypeError, match="LogisticRegression can't be fitted"):
        mr.NeymanPearsonClassifier(LogisticRegression()).fit(source)
    with pytest.raises(ValueError, match="a share between 0 and 1"):
        mr.NeymanPearsonClassifier(mr.KLIEP(), calibration_size=100).fit(source)
    with pytest.raises(ValueError, match="controlled class 7"):
        mr.NeymanPearsonClassifier(mr.KLIEP(), controlled_class=7).fit(source)
