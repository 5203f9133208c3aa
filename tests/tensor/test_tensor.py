"""Tensors give the numbers of NumPy's arrays."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from data import two_normals
from skops import io as skops_io

import missratio as mr
from missratio.missingness import Block, BlockMissingness
from missratio.rows import ClassRows, MemorySource
from missratio.tensor import arrays, rows
from missratio.tensor.rows import device_weights

torch = pytest.importorskip("torch")
N_COLUMNS = 5


@pytest.fixture
def as_device(monkeypatch):
    """Take tensors of the CPU for those of a device."""

    def taken(X):
        return X if arrays.is_tensor(X) else None

    monkeypatch.setattr("missratio.tensor.on_device", taken)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def labelled(*, sort, n_rows=8000):
    X, y = two_normals(n_rows // 2, N_COLUMNS)
    order = np.argsort(y, kind="stable") if sort else slice(None)
    return X[order] + 2.0, y[order]


LOGISTIC = {
    1: mr.LogisticMissingness(np.full(N_COLUMNS, -1.0), np.full(N_COLUMNS, 0.4)),
    0: mr.LogisticMissingness(np.full(N_COLUMNS, -3.0), np.full(N_COLUMNS, 0.2)),
}
STEP = {1: mr.StepMissingness(np.ones(N_COLUMNS), 10.0, 0.5)}
ROWWISE = {1: mr.LogisticMissingness(-1.0, np.full(N_COLUMNS, 0.1), rowwise=True)}
PAIR = Block((1, 2), (1, 2), mr.LogisticMissingness(-1.5, [0.2, 0.3], rowwise=True))
BLOCKS = {
    label: BlockMissingness(LOGISTIC[label], (PAIR,), N_COLUMNS) for label in (0, 1)
}
FUNCTION = {1: mr.FunctionMissingness(lambda X: 0.3 + 0.2 * (X[:, 0] > 2.0))}


@pytest.mark.usefixtures("as_device")
def test_a_complete_fit_reads_each_class_as_often_as_it_must(monkeypatch):
    """Class 1 once, for its means; class 0 at each step after the pilot."""
    n, read = 100_000, []
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(2 * n, 40)))
    X[n:] += 0.05
    blocks = rows.TensorSample._blocks

    def counted(sample):
        read.append(len(sample.rows) / n)
        return blocks(sample)

    monkeypatch.setattr(rows.TensorSample, "_blocks", counted)
    ratio = mr.KLIEP().fit(X, torch.arange(2 * n) // n)
    whole = [share for share in read if share == 1.0]
    # The means, where the pilot ended, and each step.
    assert len(whole) == 2 + ratio.n_iter_
    assert sum(read) - len(whole) < 1.0


@pytest.mark.usefixtures("as_device")
@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize(("dtype", "within"), [("float64", 2e-8), ("float32", 3e-6)])
@pytest.mark.parametrize(
    "ratio",
    [
        mr.KLIEP(),
        mr.KLIEP(l2=0.01),
        mr.KLIEP(l1=0.02),
        mr.KLIEP(solver="lbfgs", l2=0.1),
    ],
    ids=repr,
)
def test_a_device_gives_the_numbers_of_numpy(ratio, dtype, within, sort):
    X, y = labelled(sort=sort)
    expected = ratio.fit(X, y).coef_.copy(), ratio.intercept_
    # First-order steps end as far from the optimum as tol lets them.
    within = 1e-5 if getattr(ratio, "solver", None) == "lbfgs" else within
    ratio.fit(torch.as_tensor(X.astype(dtype)), torch.as_tensor(y))
    np.testing.assert_allclose(ratio.coef_, expected[0], atol=within)
    np.testing.assert_allclose(ratio.intercept_, expected[1], atol=10 * within)


@pytest.mark.usefixtures("as_device")
@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize(
    "missingness", [LOGISTIC, STEP, ROWWISE, BLOCKS, FUNCTION, "ignore"], ids=str
)
def test_missing_values_weigh_the_same_there(missingness, sort):
    X, y = labelled(sort=sort)
    for label, model in (LOGISTIC if missingness == "ignore" else missingness).items():
        X[y == label] = mr.corrupt(X[y == label], model, random_state=label)
    ratio = mr.KLIEP(missingness=missingness)
    expected = ratio.fit(X, y).coef_.copy()
    sizes = ratio.effective_sample_size_
    ratio.fit(torch.as_tensor(X), torch.as_tensor(y))
    np.testing.assert_allclose(ratio.coef_, expected, atol=2e-8)
    for label, size in sizes.items():
        assert ratio.effective_sample_size_[label].observed == size.observed
        np.testing.assert_allclose(ratio.effective_sample_size_[label].kish, size.kish)


def test_weights_keep_their_digits_where_hardly_any_value_is_observed():
    log_odds = np.linspace(-40.0, 36.0, 200)
    phi = mr.LogisticMissingness(0.0, 1.0)
    rows = torch.as_tensor(log_odds[:, None])
    weighed = ClassRows.of(MemorySource.of(log_odds[:, None]), 1, {1: phi}, "hajek")
    found = device_weights(weighed, rows)[:, 0]
    np.testing.assert_allclose(found, 1.0 + np.exp(log_odds), rtol=1e-15)
    with pytest.raises(ValueError, match="φ is 1"):
        device_weights(weighed, rows + 4.0)


@pytest.mark.usefixtures("as_device")
@pytest.mark.parametrize(
    "ratio",
    [
        mr.NaiveBayesRatio(),
        mr.KLIEP(basis=mr.PolynomialBasis()),
        mr.FDivergenceRatio("js"),
        mr.KLIEPCV(l2_grid=3, cv=2, random_state=0),
        mr.KLIEPCV(normalize="regression", l2_grid=3, cv=2, random_state=0),
    ],
    ids=repr,
)
def test_all_but_one_linear_kliep_is_worked_out_on_the_host(ratio):
    X, y = labelled(sort=False, n_rows=400)
    expected = ratio.fit(X, y).coef_.copy()
    ratio.fit(torch.as_tensor(X), torch.as_tensor(y))
    np.testing.assert_allclose(ratio.coef_, expected, atol=1e-8)


def _with(value, row):
    def change(X, y):
        X[row, 2] = value
        return X, y

    return change


@pytest.mark.usefixtures("as_device")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        *((_with(v, r), "NaN or infinity") for v in (np.nan, np.inf) for r in (5, -5)),
        (lambda X, y: (X, 0 * y), "labels"),
        (lambda X, y: (X, torch.arange(len(y))), "labels"),
        (lambda X, y: (X, y[:50]), "a label for each"),
        (lambda X, y: (X.half(), y), "float32 or float64"),
    ],
)
def test_rows_and_labels_that_cannot_be_fitted_are_refused(change, message):
    X, y = (torch.as_tensor(each) for each in labelled(sort=True, n_rows=2000))
    with pytest.raises(ValueError, match=message):
        mr.KLIEP().fit(*change(X, y))


@pytest.mark.usefixtures("as_device")
def test_predictions_follow_x():
    X, y = labelled(sort=True, n_rows=2000)
    ratio = mr.KLIEP().fit(X, y)
    found = ratio.predict_ratio(torch.as_tensor(X))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), ratio.predict_ratio(X))
    np.testing.assert_array_equal(ratio.predict(torch.as_tensor(X)), ratio.predict(X))
    with pytest.raises(ValueError, match="columns"):
        ratio.predict_ratio(torch.as_tensor(X[:, :2]))
    with pytest.raises(ValueError, match="NaN or infinity"):
        ratio.predict_ratio(torch.as_tensor(X) * torch.inf)


def test_tensors_of_half_precision_are_read_as_arrays():
    X, y = labelled(sort=False, n_rows=2000)
    half = torch.as_tensor(X).bfloat16()
    np.testing.assert_array_equal(
        mr.KLIEP().fit(half, y).coef_, mr.KLIEP().fit(half.float().numpy(), y).coef_
    )


DISPATCHED = """
import sklearn, torch
import missratio as mr
sklearn.set_config(array_api_dispatch=True)
y = torch.arange(2000) % 2
X = torch.randn(2000, 2, dtype=torch.float64) + 0.8 * y[:, None]
def threshold(X, y):
    classifier = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.2, random_state=0)
    return classifier.fit(X, y).certificate_.threshold
assert threshold(X, y) == threshold(X.numpy(), y.numpy())
ratio = mr.KLIEP().fit(X, y)
assert isinstance(ratio.coef_, torch.Tensor)
X, y, score = X.numpy(), y.numpy(), ratio.score(X, y)
assert score == mr.KLIEP().fit(X, y).score(X, y)
"""


def test_tensors_under_array_api_dispatch():
    # SciPy reads its switch when it is imported.
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", DISPATCHED], check=True, env=environment)


def test_cupy_arrays_are_fitted_where_they_lie():
    cupy = pytest.importorskip("cupy")
    X, y = labelled(sort=False, n_rows=2000)
    expected = mr.KLIEP().fit(X, y)
    found = mr.KLIEP().fit(cupy.asarray(X), cupy.asarray(y))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=2e-8)
    scores = found.predict_log_ratio(cupy.asarray(X))
    np.testing.assert_allclose(scores.cpu(), expected.predict_log_ratio(X), atol=1e-6)
    classifier = mr.NeymanPearsonClassifier(mr.KLIEP(), alpha=0.2, random_state=0)
    classifier.fit(cupy.asarray(X), cupy.asarray(y))


@pytest.mark.usefixtures("as_device")
def test_coefficients_are_saved_on_the_host():
    X, y = labelled(sort=True, n_rows=2000)
    fitted = mr.KLIEP().fit(torch.as_tensor(X), torch.as_tensor(y))
    # As array-API dispatch leaves them.
    fitted.coef_ = torch.as_tensor(fitted.coef_)
    found = pickle.loads(pickle.dumps(fitted)).coef_
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, fitted.coef_.numpy())
    objects = skops_io.dumps(fitted)
    assert not [
        name for name in skops_io.get_untrusted_types(data=objects) if "torch" in name
    ]


KERNEL = """
import numpy as np, torch
from missratio.tensor.fused import tilted_sums

generator = torch.Generator().manual_seed(0)
for n_rows, n_columns, dtype, within in (
    (20_000, 5, torch.float32, 2e-6), (9000, 20, torch.float64, 1e-12)
):
    X = torch.randn(n_rows, n_columns, dtype=dtype, generator=generator) + 1
    weights = torch.rand(n_rows, dtype=dtype, generator=generator)
    weights[::3] = 0
    X[::3] = torch.nan
    centre = torch.ones(n_columns, dtype=dtype)
    for size in (0.3, 40.0):
        coef = size * torch.randn(n_columns, dtype=dtype, generator=generator)
        found = tilted_sums(X, weights, torch.stack([coef, centre]))
        seen = weights > 0
        rows = X[seen].double() - 1
        score = rows @ coef.double()
        mass = weights[seen].double() * torch.exp(score - found.log_scale[0])
        off = np.exp(abs(size) - 0.3) * within if size < 1 else 1e3 * within
        assert abs(found.value[0] / float(mass.sum()) - 1) < off
        assert (torch.tensor(found.slope) - mass @ rows).abs().max() < off * mass.sum()
        assert abs(found.highest[0] - float(score.max())) < 1e-4 * size
        assert abs(found.lowest[0] - float(score.min())) < 1e-4 * size
print("as it should")
"""


def test_the_fused_kernel_in_triton_s_interpreter():
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", KERNEL], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "as it should", done.stderr
