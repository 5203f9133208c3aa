"""The Hessian of one problem as a linear map, without the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from missratio._base.typing import FloatArray
from missratio.engine import Sample
from missratio.moments import Link, Parameters, Sums, row_sums
from missratio.objective import Term
from missratio.ratio._problem import RatioProblem

# Rows with a smaller part in the Hessian than this part of the mean are left out, where
# no more than this part of all rows is left. A ratio of 3,000 columns weighs half of
# 5,000 rows by next to nothing.
LEAST_PART = 1e-3
KEPT = 0.8


@dataclass(frozen=True)
class Curvature:
    """Multiply vectors by the Hessian: Σ v f̃f̃ᵀ, what the chain rule adds, and l2.

    Parameters
    ----------
    problem : RatioProblem
        One problem.
    samples : sequence of Sample
        Rows that count, weighted by v: their parts in the Hessian.
    slopes, outer : ndarray of shape (n_terms, n_parameters) and (n_terms, n_terms)
        The terms' gradients, and the objective's Hessian in the terms.
    """

    problem: RatioProblem
    samples: Sequence[Sample]
    slopes: FloatArray
    outer: FloatArray

    @classmethod
    def at(cls, problem: RatioProblem, theta: FloatArray) -> Curvature:
        """The Hessian at some parameters, for samples that are held and centred."""
        coef, intercept = problem.split(theta[None])
        at = Parameters(coef, None, intercept)
        sums = problem.sums(theta[None], second_order=False)
        outer, divisors = problem.outer(*sums)
        first = (outer.gradient / divisors)[:, 0]
        slopes = np.array([own.slope[0] for each in sums for own in each]) / divisors
        second = np.zeros((len(slopes), len(slopes)))
        if outer.hessian is not None:
            second = outer.hessian[..., 0]
        links = (problem.objective.numerator, problem.objective.denominator)
        parts = (first[: len(sums[0])], first[len(sums[0]) :])
        both = (problem.numerator, problem.denominator)
        samples = [
            _weighted(sample, link, at, own, part)
            for sample, link, own, part in zip(both, links, sums, parts, strict=True)
            if isinstance(sample, Sample)
        ]
        return cls(problem, samples, slopes, second)

    def __call__(self, vector: FloatArray) -> FloatArray:
        """The Hessian times a vector."""
        n_features = self.problem.centre.shape[1]
        result: FloatArray = self.slopes.T @ (self.outer @ (self.slopes @ vector))
        if self.problem.l2 is not None:
            result[:n_features] += self.problem.pull(vector[None, :n_features])[0]
        # Once, not for every block: threads wait for each other in small operations.
        single = vector.astype(self.samples[0].features.dtype)
        coef, intercept = self.problem.split(single[None])
        at = Parameters(coef, None, intercept)

        def work(features: FloatArray, weights: FloatArray | None) -> FloatArray:
            assert weights is not None
            mass = at.score(features) * weights
            found = row_sums(mass, features)[0]
            return found if intercept is None else np.append(found, mass.sum())

        for sample in self.samples:
            result += sample.fold(work, merge=_total)
        return result


def _weighted(
    sample: Sample,
    link: Link,
    at: Parameters,
    sums: Sequence[Sums],
    factors: FloatArray,
) -> Sample:
    """The rows that count, each weighted by its part in the Hessian."""

    def work(features: FloatArray, weights: FloatArray | None) -> FloatArray:
        found = link(at.score(features))
        terms = (found,) if isinstance(found, Term) else found
        mass = sum(
            factor * np.exp(term.log_scale - own.log_scale) * term.curvature
            for term, own, factor in zip(terms, sums, factors, strict=True)
        )
        mass = np.asarray(mass if weights is None else mass * weights)
        return mass.astype(features.dtype, copy=False)

    masses = sample.fold(work, merge=lambda parts: np.concatenate(parts, axis=1))
    size = np.abs(masses[0])
    kept = np.flatnonzero(size > LEAST_PART * size.mean())
    features = sample.features
    if len(kept) < KEPT * len(size):
        features, masses = features[:, kept], masses[:, kept]
    return replace(sample, features=features, weights=masses)


def _total(parts: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(np.sum(parts, axis=0, dtype=np.float64))
