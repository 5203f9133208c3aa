"""The progress of long fits, by scikit-learn's callbacks, which 1.9 brought.

An estimator inherits `CallbackSupportMixin` and works its items off by `told`. One that
only passes rows on to another estimator gives that one its callbacks, by `handed_down`.
A function that takes `callbacks` has a `task` in the place of an estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from sklearn.base import clone

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """The method itself."""
        return method


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
    if not listens(estimator):
        return [work(item) for item in items]
    results: list[_Result] = _told(estimator, name, items, work, total)
    return results


def listens(estimator: Any) -> bool:
    """Whether it has callbacks."""
    return bool(getattr(estimator, "_skl_callbacks", None))


def handed_down(owner: Any, estimator: Any) -> Any:
    """An estimator with its owner's callbacks, where it takes some and has none.

    Parameters
    ----------
    owner : estimator
    estimator : estimator
        It is cloned before it is changed.
    """
    callbacks = getattr(owner, "_skl_callbacks", None)
    takes = hasattr(estimator, "set_callbacks") and not listens(estimator)
    return (
        clone(estimator).set_callbacks(*callbacks) if callbacks and takes else estimator
    )


def task(name: str, callbacks: Sequence[Any] | None) -> Any:
    """What stands for a function where callbacks want an estimator.

    Parameters
    ----------
    name : str
        Of the function.
    callbacks : sequence of callbacks, or None
    """
    named = type(name, (CallbackSupportMixin,), {})()
    if callbacks:
        if not hasattr(named, "set_callbacks"):
            raise TypeError(
                f"{name} got callbacks, and this scikit-learn has none: they came with "
                "1.9. Install a newer one, or leave callbacks out."
            )
        named.set_callbacks(*callbacks)
    return named


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
