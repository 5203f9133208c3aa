"""A fitted ratio at a glance."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from missratio._base.summary import Summary, figure


def summarize(ratio: Any) -> Summary:
    """What a ratio was fitted to, how well it was solved, and its coefficients."""
    check_is_fitted(ratio)
    names = _names(ratio)
    coef = [float(value) for value in getattr(ratio, "coef_", ())] if names else []
    return Summary(
        title=f"{type(ratio).__name__}: log density ratio",
        facts=tuple(_facts(ratio)),
        header=("feature", "coefficient") if coef else (),
        rows=tuple((n, figure(c, 5)) for n, c in zip(names, coef, strict=True)),
        notes=tuple(_notes(ratio, bool(coef))),
    )


def _names(ratio: Any) -> list[str]:
    from missratio.ratio._joint import JointRatio
    from missratio.ratio._naive_bayes import NaiveBayesRatio
    from missratio.ratio._optimum import feature_names

    known = isinstance(ratio, JointRatio | NaiveBayesRatio)
    return feature_names(ratio) if known else []


def _facts(ratio: Any) -> list[tuple[str, str]]:
    denominator, numerator = ratio.classes_.tolist()
    found = [("numerator", repr(numerator)), ("denominator", repr(denominator))]
    sizes = getattr(ratio, "effective_sample_size_", {})
    for label in (numerator, denominator):
        if label in sizes:
            size = sizes[label]
            found += [
                (f"rows of {label!r}", f"{size.rows} ({size.observed} observed)"),
                ("effective sample size", figure(size.kish)),
            ]
    for name, attribute in (
        ("objective", "objective_value_"),
        ("iterations", "n_iter_"),
        ("log normaliser", "log_normalizer_"),
        ("penalty chosen", "l2_"),
    ):
        value = getattr(ratio, attribute, None)
        if isinstance(value, int | float):
            found.append((name, figure(value)))
    if hasattr(ratio, "converged_"):
        found.append(("converged", "yes" if ratio.converged_ else "no"))
    return found


def _notes(ratio: Any, has_coefficients: bool) -> list[str]:
    notes = []
    if not getattr(ratio, "converged_", True):
        notes.append(
            "The optimum wasn't reached: coefficients may mean nothing. Add a ridge "
            "penalty (l2), or raise max_iter."
        )
    if getattr(ratio, "fallback_used_", False):
        notes.append(
            "The denominator has too few complete rows, and its columns were taken as "
            "independent."
        )
    if has_coefficients and not notes and _has_standard_errors(ratio):
        notes.append(
            "Standard errors: ratio_uncertainty(ratio, X, y).summary(), with the rows "
            "of the fit."
        )
    return notes


def _has_standard_errors(ratio: Any) -> bool:
    """Whether the sandwich formula is for such a ratio, solved as it was."""
    from missratio.ratio._optimum import joint_ratio

    joint = joint_ratio(ratio)
    return bool(joint._is_log_linear() and not joint._fitted_strength[0].any())
