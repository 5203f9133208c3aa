"""Rows that lie in tensors, on a CPU or a GPU: their sums, computed where they lie.

Nothing here imports PyTorch or Triton before a tensor comes.
"""

from missratio.tensor.arrays import in_library_of as in_library_of
from missratio.tensor.arrays import is_tensor as is_tensor
from missratio.tensor.arrays import like as like
from missratio.tensor.arrays import linear_scores as linear_scores
from missratio.tensor.arrays import on_device as on_device
from missratio.tensor.arrays import on_host as on_host
from missratio.tensor.rows import tensor_classes as tensor_classes
