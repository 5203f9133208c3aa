"""Tensors as arrays, without importing PyTorch where there are none."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray

# A row of more columns has no room in a program's registers.
KERNEL_COLUMNS = 512


def is_tensor(X: Any) -> bool:
    """Whether X is a PyTorch tensor."""
    return type(X).__module__.partition(".")[0] == "torch" and hasattr(X, "device")


def is_cupy(X: Any) -> bool:
    """Whether X is one of CuPy's arrays, which lie on a device."""
    return type(X).__module__.partition(".")[0] == "cupy"


def as_tensor(values: Any) -> Any:
    """Values as a tensor: those of a device where they lie, without a copy."""
    import torch

    there = is_tensor(values) or is_cupy(values)
    return torch.as_tensor(values if there else np.asarray(values))


def on_device(X: Any) -> Any:
    """X as a tensor, where it lies on a device other than the host; else None."""
    if is_cupy(X):
        return as_tensor(X)
    return X if is_tensor(X) and X.device.type != "cpu" else None


def on_host(values: Any) -> Any:
    """A tensor, or an array of another library, as a NumPy array.

    What isn't one of these, such as a list or a dataframe, is returned as it is.
    """
    if isinstance(values, np.ndarray):
        return values
    if is_tensor(values):
        # NumPy has no type for bfloat16, whose numbers float32 has all of.
        half = str(values.dtype) == "torch.bfloat16"
        return (values.float() if half else values).detach().cpu().numpy()
    if is_cupy(values):
        # It refuses to become a NumPy array in passing.
        return values.get()
    return np.asarray(values) if hasattr(values, "__array_namespace__") else values


def in_library_of(X: Any, values: Any) -> Any:
    """Numbers as an array of the library that X is of, where X lies.

    Texts, and what isn't an array, stay what they are.
    """
    numbers = isinstance(values, np.ndarray) and values.dtype.kind in "biuf"
    if isinstance(X, np.ndarray) or not numbers:
        return values
    if is_tensor(X):
        return as_tensor(values).to(X.device)
    known = hasattr(X, "__array_namespace__")
    return X.__array_namespace__().asarray(values) if known else values


def has_kernels(X: Any) -> bool:
    """Whether the fused kernels take a tensor: few columns on CUDA, rows in a piece."""
    fits = X.is_cuda and 0 < X.shape[1] <= KERNEL_COLUMNS and X.stride(1) == 1
    return bool(fits and find_spec("triton") is not None)


def like(X: Any, values: Any) -> Any:
    """An array as a tensor of another one's type, where that lies."""
    import torch

    return torch.as_tensor(np.asarray(values), dtype=X.dtype, device=X.device)


def linear_scores(
    X: Any, coef: FloatArray, intercept: float, *, allow_nan: bool
) -> Any:
    """Xθ + intercept where a tensor lies; infinities, and NaN, are refused.

    They show in the scores: rows are read once more only where some aren't finite.
    """
    if X.ndim != 2 or X.shape[1] != len(coef):
        raise ValueError(
            f"X has shape {tuple(X.shape)}, and the ratio was fitted to {len(coef)} "
            "columns."
        )
    if has_kernels(X):
        from missratio.tensor import fused

        scores = fused.linear_scores(X, like(X, coef), intercept)
    else:
        scores = X @ like(X, coef)
        scores += intercept
    if not bool(scores.isfinite().all()):
        odd = X.isinf() if allow_nan else ~X.isfinite()
        if bool(odd.any()):
            what = "infinity" if allow_nan else "NaN or infinity"
            raise ValueError(f"Input X contains {what}. Replace it by numbers.")
    return scores
