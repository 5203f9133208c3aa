"""Tensors as arrays, without importing PyTorch where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_tensor(X: Any) -> bool:
    """Whether X is a PyTorch tensor."""
    return type(X).__module__.partition(".")[0] == "torch" and hasattr(X, "device")


def as_numpy(values: Any) -> Any:
    """Values on the host: those of a tensor, or an array as it is."""
    if is_tensor(values):
        return values.detach().cpu().numpy()
    return np.asarray(values)
