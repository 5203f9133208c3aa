"""Tensors as arrays, without importing PyTorch where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from missratio._base.typing import FloatArray

# A fit takes, beside a tensor's rows, a pilot's and some numbers for each row.
PART_FOR_ROWS = 0.8


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def is_tensor(X: Any) -> bool:
    """Whether X is a PyTorch tensor."""
    return _library(X) == "torch" and hasattr(X, "device")


def as_tensor(values: Any) -> Any:
    """Values as a tensor: CuPy's where they lie, all else on the host."""
    import torch

    if is_tensor(values):
        return values
    # CuPy refuses to become a NumPy array in passing.
    return torch.as_tensor(values if _library(values) == "cupy" else np.asarray(values))


def on_device(X: Any) -> Any:
    """X as a tensor, where it lies on a device other than the host; else None.

    CuPy's arrays are taken as tensors, without a copy.
    """
    if isinstance(X, np.ndarray):
        return None
    if _library(X) == "cupy":
        return as_tensor(X)
    return X if is_tensor(X) and X.device.type != "cpu" else None


def as_numpy(values: Any) -> Any:
    """Values on the host: those of a tensor, or an array as it is."""
    if isinstance(values, np.ndarray):
        return values
    if is_tensor(values):
        # NumPy has no type for bfloat16, whose numbers float32 has all of.
        half = str(values.dtype) == "torch.bfloat16"
        return (values.float() if half else values).detach().cpu().numpy()
    return np.asarray(values.get() if _library(values) == "cupy" else values)


def on_host(values: Any) -> Any:
    """A tensor, or an array of another library, as a NumPy array.

    What isn't one of these, such as a list or a dataframe, is returned as it is.
    """
    if isinstance(values, np.ndarray):
        return values
    foreign = is_tensor(values) or hasattr(values, "__array_namespace__")
    return as_numpy(values) if foreign else values


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


@contextmanager
def within_memory(X: Any) -> Iterator[None]:
    """Say how many rows fit, where a fit of a tensor runs out of a device's memory."""
    tensor = on_device(X)
    if tensor is None:
        yield
        return
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        n_rows, n_columns = tensor.shape
        fit = ""
        if tensor.device.type == "cuda":
            _, memory = torch.cuda.mem_get_info(tensor.device)
            rows = int(PART_FOR_ROWS * memory / (n_columns * tensor.element_size()))
            fit = f": about {rows} rows fit into its {memory / 1e9:.0f} GB"
        raise MemoryError(
            f"The memory of {tensor.device} doesn't suffice for a fit of {n_rows} rows "
            f"× {n_columns} columns{fit}. Bring fewer rows, or leave them on the host: "
            "fit X.cpu(), or files by scan_parquet(…)."
        ) from error
