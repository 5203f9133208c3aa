"""Rows that lie in tensors, on a CPU or a GPU: their sums, computed where they lie.

Nothing here imports PyTorch or Triton before a tensor comes.
"""

from missratio.tensor.arrays import (
    as_numpy,
    check_rows,
    is_tensor,
    like,
    on_device,
    on_host,
    within_memory,
)
from missratio.tensor.rows import tensor_classes

__all__ = [
    "as_numpy",
    "check_rows",
    "is_tensor",
    "like",
    "on_device",
    "on_host",
    "tensor_classes",
    "within_memory",
]
