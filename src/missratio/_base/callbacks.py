"""The progress of long fits, by scikit-learn's callbacks.

An estimator inherits `CallbackSupportMixin` and works its items off by `run_tasks`. One
that only passes rows on to another estimator gives that one its callbacks, by
`with_callbacks_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sklearn.base import clone
from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
from sklearn.callback import with_callbacks

from missratio._base.threads import share

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@with_callbacks
def run_tasks(
    estimator: Any,
    name: str,
    items: Iterable[_Item],
    work: Callable[[_Item], _Result],
    threads: int = 1,
) -> list[_Result]:
    """Work on items, each a task that the estimator's callbacks are told of.

    Parameters
    ----------
    estimator : estimator
        With callbacks, set by `set_callbacks`, or without.
    name : str
        Of a task.
    items : iterable
    work : callable
    threads : int, default=1
        That share the items.
    """
    every = list(items)
    whole = estimator._init_callback_context(
        max_subtasks=len(every), sequential_subtasks=False
    )
    whole.call_on_fit_task_begin(estimator=estimator)

    def one(number: int) -> _Result:
        task = whole.subcontext(task_name=name, task_id=number)
        task.call_on_fit_task_begin(estimator=estimator)
        result = work(every[number])
        task.call_on_fit_task_end(estimator=estimator)
        return result

    results = share(one, range(len(every)), threads)
    whole.call_on_fit_task_end(estimator=estimator)
    return results


def with_callbacks_of(owner: Any, estimator: Any) -> Any:
    """An estimator with its owner's callbacks, where it takes some and has none.

    Parameters
    ----------
    owner : estimator
    estimator : estimator
        It is cloned before it is changed.
    """
    callbacks = getattr(owner, "_skl_callbacks", None)
    taken = getattr(estimator, "_skl_callbacks", None)
    if not callbacks or taken or not hasattr(estimator, "set_callbacks"):
        return estimator
    return clone(estimator).set_callbacks(*callbacks)
