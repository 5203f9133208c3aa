"""Rows that lie in tensors, on a CPU or a GPU: their sums, computed where they lie.

Nothing here imports PyTorch or Triton before a tensor comes.
"""
