"""What other numbers of look-ups would buy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from missratio._base.typing import FloatArray
from missratio.classifier import NeymanPearsonClassifier, QueryBudget, query_budget
from missratio.exceptions import TableError


def budget_of(
    classifier: NeymanPearsonClassifier,
    X: FloatArray,
    y: Any,
    budgets: Sequence[int],
) -> QueryBudget:
    """What so many look-ups a column would buy, from those that there are.

    Parameters
    ----------
    classifier : NeymanPearsonClassifier
        With a learned φ of the controlled class.
    X, y : ndarray
        The rows that it was fitted with.
    budgets : sequence of int
    """
    try:
        return query_budget(classifier, X, y, budgets)
    except ValueError as error:
        raise TableError(
            "--query-budget needs a φ of the controlled class that was learned, by "
            f"--queries of single values or --missingness learn. {error}"
        ) from error


def budget_words(budget: QueryBudget) -> str:
    """The same as a few lines."""
    lines = [
        f"- {queries:g} look-ups a column: "
        + (f"power about {power:.0%}" if certified else "no certificate")
        + f", φ known to ±{width / 2.0:.3f}"
        for queries, width, power, certified in zip(
            budget.queries, budget.band_width, budget.power, budget.certified,
            strict=True,
        )
    ]  # fmt: skip
    known = f"- φ known for certain: power about {budget.known:.0%}"
    head = "What other numbers of look-ups would buy, by those that there are:"
    return "\n".join([head, *lines, known])
