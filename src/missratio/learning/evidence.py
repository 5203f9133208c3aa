"""What is known of missing values: those observed, and those that were looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from missratio._base.blocks import any_by_row
from missratio._base.reading import joined
from missratio._base.storable import storable
from missratio._base.typing import FloatArray, IntArray
from missratio.exceptions import warn
from missratio.missingness import balanced_intercepts

LARGEST_SCORE = 700.0
# A feature's observed values are kept as this many group means, and as this many single
# values at either end; of whole rows this many are kept.
GROUPS = 2**10
ENDS = 2**7
KEPT_ROWS = 2**14


@storable()
@dataclass(frozen=True)
class Coordinates:
    """α + βᵀz = a + bᵀ(z − centre)/scale: b = scale·β and a = α + βᵀcentre.

    Values may lie far from the origin compared with their spread. Covariances of (α, β)
    are then singular but for rounding, and those of (a, b) are not.

    Parameters
    ----------
    centre, scale : ndarray of shape (n_columns,)
    """

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Coordinates:
        """Mean and standard deviation of values of shape (n_columns, n_values)."""
        centre, scale = values.mean(axis=1), values.std(axis=1)
        return cls(centre, np.where(scale > 0.0, scale, 1.0))

    def design(self, values: FloatArray) -> FloatArray:
        """(1, z) with z standardised: (1 + n_columns, n_values)."""
        z = (values - self.centre[:, None]) / self.scale[:, None]
        return np.concatenate([np.ones((1, z.shape[1])), z])

    def standardise(self, theta: FloatArray) -> FloatArray:
        """(a, b) of (α, β), along the last axis."""
        slopes = theta[..., 1:]
        first = theta[..., :1] + (slopes * self.centre).sum(axis=-1, keepdims=True)
        return np.concatenate([first, slopes * self.scale], axis=-1)

    def restore(self, theta: FloatArray) -> FloatArray:
        """(α, β) of (a, b), along the last axis."""
        slopes = theta[..., 1:] / self.scale
        first = theta[..., :1] - (slopes * self.centre).sum(axis=-1, keepdims=True)
        return np.concatenate([first, slopes], axis=-1)

    def restore_covariance(self, covariance: FloatArray) -> FloatArray:
        """The covariance of (α, β) from that of (a, b)."""
        linear = self.restore(np.eye(len(covariance))).T
        return np.asarray(linear @ covariance @ linear.T)


@storable()
@dataclass(frozen=True)
class Evidence:
    """Observed and revealed values of a feature, or of whole rows, of one class.

    Parameters
    ----------
    values : ndarray of shape (n_columns, n_known)
        Those that were missing and have been revealed come first. Without columns for
        a feature that has one value only: φ is a number then.
    n_revealed : int
    mass : ndarray of shape (n_known,)
        How many rows each stands for; one for those revealed.
    n_missing : int
        All that are missing, revealed or not.
    """

    values: FloatArray
    n_revealed: int
    mass: FloatArray
    n_missing: int

    @classmethod
    def of(cls, table: FloatArray, answers: FloatArray) -> Evidence | None:
        """The evidence of columns that go missing together; None if none is missing.

        Observed values of one feature give way to the means of groups of neighbours,
        which changes a fit by a few thousandths of its standard error at most. Rows of
        indicators are counted by level. Of very many other whole rows every k-th is
        kept and stands for k; beside m revealed ones that adds m/16,384 to the variance
        at most.
        """
        lost = any_by_row(np.isnan(table))
        n_missing = int(lost.sum())
        if not n_missing:
            return None
        # By number: a mask of which half is true takes longer.
        kept = np.ascontiguousarray(table[np.flatnonzero(~lost)].T, dtype=np.float64)
        revealed = answers[~any_by_row(np.isnan(answers))].T.astype(np.float64)
        n_observed = kept.shape[1]
        counts = np.ones(n_observed)
        if len(kept) == 1 and len(starts := group_starts(n_observed)) < n_observed:
            # Distinct values, or means of neighbours if those are many.
            kept = np.sort(kept)
            distinct = np.flatnonzero(np.diff(kept[0], prepend=-np.inf))
            starts = distinct if len(distinct) <= len(starts) else starts
            counts = np.diff(starts, append=n_observed).astype(np.float64)
            means = np.add.reduceat(kept, starts, axis=1) / counts
            kept = kept[:, starts] if starts is distinct else means
        elif len(kept) > 1 and one_hot(kept):
            kept, n_rows = np.unique(kept, axis=1, return_counts=True)
            counts = n_rows.astype(np.float64)
        elif len(kept) > 1 and n_observed > 2 * KEPT_ROWS:
            kept = kept[:, :: n_observed // KEPT_ROWS]
            counts = np.full(kept.shape[1], n_observed / kept.shape[1])
        return cls(
            np.concatenate([revealed, kept], axis=1),
            revealed.shape[1],
            np.concatenate([np.ones(revealed.shape[1]), counts]),
            n_missing,
        )

    @property
    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Observed values, and how many rows each stands for."""
        return self.values[:, self.n_revealed :], self.mass[self.n_revealed :]

    @property
    def n_unrevealed(self) -> int:
        """How many missing values were not looked up."""
        return self.n_missing - self.n_revealed

    @property
    def sampling_offset(self) -> float:
        """log(m / n_missing) ≤ 0, by which a fit to known values puts α too low.

        Only m of the n_missing missing values are known, and all observed ones.
        Subtracting it raises the intercept to that of φ: King and Zeng's (2001)
        correction. It is 0 where nothing was looked up, and nothing fitted.
        """
        if self.n_revealed == 0:
            return 0.0
        return float(np.log(self.n_revealed / self.n_missing))

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates that standardise the known values."""
        return Coordinates.of(self.values)

    def revealed_probability(self, theta: FloatArray) -> FloatArray:
        """P(revealed) of known values at φ's (α, β)."""
        first = theta[0] + self.sampling_offset
        return np.asarray(expit(first + theta[1:] @ self.values))

    def information(
        self, theta: FloatArray, coordinates: Coordinates
    ) -> tuple[FloatArray, float]:
        """Fisher's Σ p(1 − p) xxᵀ over known values, and how many revealed it expects.

        Parameters are standardised ones of φ.
        """
        design = coordinates.design(self.values)
        probability = expit(self.sampling_offset + theta @ design)
        weights = self.mass * probability * (1.0 - probability)
        return (design * weights) @ design.T, float(probability @ self.mass)

    def covariance(self, theta: FloatArray, coordinates: Coordinates) -> FloatArray:
        """The covariance of standardised parameters that looked-up values alone give.

        The inverse of Fisher's information, less what is certain about the intercept:
        of the n_missing missing values not a random number but m were revealed, which
        takes 1/m − 1/n_missing from its variance.
        """
        information, expected = self.information(theta, coordinates)
        covariance = np.linalg.inv(information)
        covariance[0, 0] -= 1.0 / expected - 1.0 / (expected + self.n_unrevealed)
        return np.asarray(covariance)

    def precision(self, theta: FloatArray, coordinates: Coordinates) -> FloatArray:
        """What looked-up values say beyond the table, of standardised parameters.

        Their law is that of the observed values tilted by e^(βᵀz): it says nothing of
        the intercept, which follows from how many are missing, and that the table knows
        as well. Only of the part of the missing values that was looked up, and that is
        left out of the table's account, they bring the intercept too.
        """
        full = np.linalg.inv(self.covariance(theta, coordinates))
        level = full[:, :1] @ full[:1] / full[0, 0]
        share = self.n_revealed / self.n_missing
        return np.asarray(full - (1.0 - share) * level)


def one_hot(values: FloatArray) -> bool:
    """Whether values, (n_columns, n_values), are indicators of a category's levels."""
    return bool(np.isin(values, (0.0, 1.0)).all() and (values.sum(axis=0) <= 1.0).all())


def group_starts(size: int) -> IntArray:
    """Where groups of neighbours start among sorted values."""
    if size <= GROUPS + 2 * ENDS:
        return np.arange(size)
    inner = np.linspace(ENDS, size - ENDS, GROUPS + 1).astype(np.intp)
    return np.concatenate([np.arange(ENDS), inner, np.arange(size - ENDS + 1, size)])


class Fit(NamedTuple):
    """A logistic regression of "revealed" on the values: θ, not yet corrected.

    The likelihood has no penalty. `separated`: a hyperplane parts revealed from
    observed rows, which maximum likelihood alone finds out.
    """

    theta: FloatArray
    log_likelihood: float
    separated: bool
    converged: bool


def fit_evidence(evidence: Evidence, *, penalised: bool) -> Fit:
    """Maximise Σ mass·(yη − log(1 + e^η)) + ½ log det I(θ), η = θᵀx.

    By Fisher's scoring. The second term, which is left out for maximum likelihood, is
    Firth's penalty: Jeffreys's prior takes the first-order bias away and keeps the
    optimum finite where outcomes are separated. I(θ) = Σ w xxᵀ, w = mass·p(1 − p), is
    Fisher's information, and the penalty's gradient ½ Σ w(1 − 2p) (xᵀI⁻¹x) x. The
    intercept is then set to its maximum-likelihood value given the slopes, so that the
    fit reproduces how many rows were revealed (Puhr and others 2017).
    """
    coordinates, mass = evidence.coordinates, evidence.mass
    design = coordinates.design(evidence.values)
    revealed = np.arange(len(mass)) < evidence.n_revealed
    sign, events = np.where(revealed, 1.0, -1.0), evidence.n_revealed

    def measure(theta: FloatArray) -> tuple[float, float, FloatArray, FloatArray]:
        """What is maximised, the likelihood, log-odds and the information."""
        score = np.clip(theta @ design, -LARGEST_SCORE, LARGEST_SCORE)
        likelihood = -float(mass @ np.logaddexp(0.0, -sign * score))
        spread = expit(score) * expit(-score)
        information = (design * (mass * spread)) @ design.T
        penalty = 0.5 * np.linalg.slogdet(information)[1] if penalised else 0.0
        return likelihood + penalty, likelihood, score, information

    # It begins where nothing depends on the values.
    theta = np.zeros(len(design))
    theta[0] = np.log(events / (mass.sum() - events))
    value, likelihood, score, information = measure(theta)
    separated = converged = False
    for _ in range(200):
        inverse = np.linalg.pinv(information, hermitian=True)
        residual = mass * sign * expit(-sign * score)
        if penalised:
            spread = mass * expit(score) * expit(-score)
            leverage = np.einsum("pk,pk->k", inverse @ design, design)
            residual += 0.5 * spread * (1.0 - 2.0 * expit(score)) * leverage
        gradient = design @ residual
        step = inverse @ gradient
        # The product is in standard errors squared.
        converged = float(gradient @ step) < 1e-18
        separated = not penalised and bool((sign * score > 0.0).all())
        if converged or separated:
            break
        for _ in range(40):
            tried = measure(theta + step)
            if tried[0] >= value - 1e-12 * (1.0 + abs(value)):
                break
            step = step / 2.0
        theta, (value, likelihood, score, information) = theta + step, tried
    if penalised:
        first = balanced_intercepts((theta[1:] @ design[1:])[None], mass, events)
        theta = np.append(first, theta[1:])
        likelihood = measure(theta)[1]
    return Fit(coordinates.restore(theta), likelihood, separated, converged)


@dataclass(eq=False)
class Unit:
    """Columns that go missing together, one or more, and what is found out of their φ.

    Parameters
    ----------
    columns, inputs : ndarray of int
        Their places in the table, and of those that φ is logistic in.
    name : str
    evidence : Evidence or None
        None where nothing is missing, or while it is not known.
    by_lookups, theta : ndarray or None
        (α, β) by what was looked up, and by all.
    shadow : ShadowEvidence or None
        What the table taught, or what was stated.
    checks : list of Check
        In which a test that failed says so already; `concluded` decides.
    """

    columns: IntArray
    inputs: IntArray
    name: str
    evidence: Evidence | None = None
    by_lookups: FloatArray | None = None
    theta: FloatArray | None = None
    shadow: Any = None
    checks: list[Any] = field(default_factory=list)

    @property
    def known(self) -> Evidence:
        """The evidence, where something is missing."""
        assert self.evidence is not None
        return self.evidence

    @property
    def single(self) -> bool:
        """Whether it is a column by itself, whose φ depends on nothing else."""
        return len(self.columns) == len(self.inputs) == 1


def fit_lookups(units: Sequence[Unit], method: str) -> None:
    """Fit φ to what was looked up, where something was."""
    fits = {}
    for unit in units:
        known = unit.evidence
        if known is not None and known.n_revealed and unit.shadow is None:
            fit = fits[unit.name] = fit_evidence(known, penalised=method == "firth")
            fit.theta[0] -= known.sampling_offset
            unit.by_lookups = unit.theta = fit.theta
    separated = [name for name, fit in fits.items() if fit.separated]
    if separated:
        raise ValueError(
            f"In {joined(separated)} the revealed values are separated from the "
            "observed ones, so that no maximum of the likelihood exists. Use "
            "method='firth', or look up more values."
        )
    warn_unsolved([name for name, fit in fits.items() if not fit.converged])


def warn_unsolved(names: Sequence[str]) -> None:
    """Warn of units whose φ was not learned to full precision."""
    if names:
        text = (
            f"The missingness of {joined(names)} was not learned to full precision: "
            "its values may be on very different scales. Rescale them, look for "
            "outliers, and look up some missing values."
        )
        warn(ConvergenceWarning(text))
