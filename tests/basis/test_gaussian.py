"""Gaussian bumps equal the kernel, from centres that are rows."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from missratio.basis import GaussianBasis

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
MASK = rng.random(X.shape) < 0.15
HOLED = np.where(MASK, np.nan, X)


def rows_of(table):
    return {tuple(row) for row in np.asarray(table).tolist()}


@pytest.mark.parametrize("bandwidth", [0.3, 5.0, "median"])
def test_features_are_the_rbf_kernel_with_gamma_one_over_two_sigma_squared(bandwidth):
    basis = GaussianBasis(10, bandwidth, random_state=0).fit(X)
    gamma = 1 / (2 * basis.bandwidth_**2)
    expected = rbf_kernel(X, basis.centers_, gamma=gamma)
    np.testing.assert_allclose(basis.transform(X), expected, rtol=1e-10, atol=1e-300)


def test_a_shift_or_scale_of_data_and_centres_leaves_the_features_alone():
    shift = np.array([1e6, -1e6, 3e6])
    here = GaussianBasis(X[:5], bandwidth=1.0).fit_transform(X)
    there = GaussianBasis(X[:5] + shift, bandwidth=1.0).fit_transform(X + shift)
    np.testing.assert_allclose(there, here, rtol=1e-7)
    here = GaussianBasis(10, random_state=0).fit(X)
    there = GaussianBasis(10, random_state=0).fit(1000 * X)
    assert there.bandwidth_ == pytest.approx(1000 * here.bandwidth_)
    np.testing.assert_allclose(there.transform(1000 * X), here.transform(X))


def test_float32_stays_float32_and_keeps_its_digits_for_a_narrow_bandwidth():
    narrow = (1000 + 1e3 * X).astype(np.float32)
    basis = GaussianBasis(narrow[:5], bandwidth=0.1).fit(narrow)
    near = narrow[:5] + np.float32(0.125)
    out = basis.transform(near)
    assert out.dtype == np.float32
    exact = np.exp(-(cdist(near, narrow[:5]) ** 2) / (2 * 0.1**2))
    np.testing.assert_allclose(out, exact, rtol=1e-4)


@pytest.mark.parametrize("far", [-1e300, 1.7e308])
def test_values_as_large_as_floats_go_get_zero_and_not_nan(far):
    table = np.array([[far], [3.0], [np.nan]])
    out = GaussianBasis([[3.0], [4.0]], bandwidth=0.1).fit_transform(table)
    np.testing.assert_allclose(out, [[0, 0], [1, 0], [np.nan] * 2], atol=1e-12)


def test_centres_are_distinct_complete_rows():
    basis = GaussianBasis(20, random_state=0).fit(HOLED)
    complete = rows_of(HOLED[~MASK.any(axis=1)])
    assert len(rows_of(basis.centers_)) == len(basis.centers_) == 20
    assert rows_of(basis.centers_) <= complete


def test_repeated_rows_do_not_crowd_out_the_others():
    table = np.vstack([np.zeros((500, 3)), X])
    basis = GaussianBasis(30, random_state=0).fit(table)
    assert len(rows_of(basis.centers_)) == len(basis.centers_) == 30
    assert basis.bandwidth_ > 0.1
    every = GaussianBasis(100, random_state=0).fit(np.vstack([X, X])).centers_
    assert len(every) == len(X)
    assert rows_of(every) == rows_of(X)


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), ("healthy", "sick")])
def test_with_two_labels_centres_come_from_the_one_sorted_last(labels):
    y = np.array(labels)[np.arange(len(X)) % 2]
    basis = GaussianBasis(random_state=0).fit(X, y)
    assert rows_of(basis.centers_) == rows_of(X[1::2])
    three = GaussianBasis(random_state=0).fit(X, np.arange(len(X)) % 3)
    assert rows_of(three.centers_) == rows_of(X)


LOSSY = [[np.nan, 1.0], [2.0, np.nan]]


@pytest.mark.parametrize(
    ("params", "data", "message"),
    [
        ({"centers": 0}, [X], "centers == 0, must be >= 1"),
        ({"centers": [[0.0, 0.0]]}, [X], "3 columns of X; got 2"),
        ({"centers": [[0.0, 0.0, np.nan]]}, [X], "centers contains NaN"),
        ({"bandwidth": 0.0}, [X], "bandwidth == 0.0, must be > 0"),
        ({"bandwidth": np.inf}, [X], "bandwidth == inf, must be < inf"),
        ({"bandwidth": np.nan}, [X], "bandwidth == nan, must be a number"),
        ({"bandwidth": "medium"}, [X], "got 'medium'.*mean 'median'"),
        ({}, [LOSSY], "got 2 rows and none is complete"),
        ({"centers": [[0.0, 0.0]]}, [LOSSY], r"got 0\.0 from n_samples=0.*as a number"),
        ({}, [[[1.0], [2.0], [np.nan]], [0, 0, 1]], "1 rows of the class sorted last"),
        ({}, [np.ones((9, 2))], r"got 0\.0 from n_samples=9.*as a number"),
        ({}, [X, [0, 1]], "inconsistent numbers of samples"),
    ],
)
def test_what_makes_no_sense_is_an_error(params, data, message):
    with pytest.raises(ValueError, match=message):
        GaussianBasis(**params).fit(*data)
