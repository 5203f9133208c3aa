"""Tensors as arrays, without importing PyTorch where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np

from missratio._base.typing import FloatArray


def is_tensor(X: Any) -> bool:
    """Whether X is a PyTorch tensor."""
    return type(X).__module__.partition(".")[0] == "torch" and hasattr(X, "device")


def on_device(X: Any) -> Any:
    """X, where it is a tensor on a device other than the host; else None."""
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
    return np.asarray(values) if hasattr(values, "__array_namespace__") else values


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
    scores = X @ like(X, coef)
    scores += intercept
    if not bool(scores.isfinite().all()):
        odd = X.isinf() if allow_nan else ~X.isfinite()
        if bool(odd.any()):
            what = "infinity" if allow_nan else "NaN or infinity"
            raise ValueError(f"Input X contains {what}. Replace it by numbers.")
    return scores
