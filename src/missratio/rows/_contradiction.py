"""Whether a class's rows contradict the model that weighs them."""

from __future__ import annotations

from missratio.missingness import contradictions, warn_of_contradiction
from missratio.rows._class import ClassRows
from missratio.rows._source import MemorySource
from missratio.rows._weighing import ModelWeighing

# As many rows find what is worth a warning.
MOST_ROWS = 20_000


def warn_if_contradicted(rows: ClassRows, complete: bool, stacklevel: int) -> None:
    """Warn where rows contradict φ; rows in memory, some of them where they are many.

    Parameters
    ----------
    rows : ClassRows
    complete : bool
        Whether products of the columns' weights are used, and so to be checked.
    stacklevel : int
        As for `warnings.warn`; 2 is the caller of this function.
    """
    if not isinstance(rows.weighing, ModelWeighing):
        return
    if not isinstance(rows.source, MemorySource):
        return
    few = rows.source.every(1 + rows.n_rows // MOST_ROWS)
    table = few.block(0, few.n_rows).rows
    model = rows.weighing.model
    checks = contradictions(table, model, complete=complete, names=rows.names)
    warn_of_contradiction(checks, rows.label, stacklevel + 1)
