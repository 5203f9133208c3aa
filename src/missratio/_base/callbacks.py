"""The progress of long fits, by scikit-learn's callbacks, which 1.9 brought."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """The method itself."""
        return method


__all__ = ["CallbackSupportMixin", "told"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def told(
    estimator: Any,
    name: str,
    items: Iterable[_Item],
    work: Callable[[_Item], _Result],
    total: int,
) -> list[_Result]:
    """Work on items one by one, each a task that the estimator's callbacks are told of.

    Parameters
    ----------
    estimator : estimator
        With callbacks, set by `set_callbacks`, or without.
    name : str
        Of a task.
    items : iterable
    work : callable
    total : int
        How many items there are.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return [work(item) for item in items]
    found: list[_Result] = _told(estimator, name, items, work, total)
    return found


@with_callbacks
def _told(estimator: Any, name: str, items: Any, work: Any, total: int) -> Any:
    whole = estimator._init_callback_context(max_subtasks=total)
    whole.call_on_fit_task_begin(estimator=estimator)
    found = []
    for item in items:
        task = whole.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=estimator)
        found.append(work(item))
        task.call_on_fit_task_end(estimator=estimator)
    whole.call_on_fit_task_end(estimator=estimator)
    return found
