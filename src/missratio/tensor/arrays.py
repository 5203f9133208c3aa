"""Tensors as arrays, without importing PyTorch where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from missratio._base.blocks import unmasked

# A fit takes, beside a tensor's rows, a pilot's and some numbers for each row.
PART_FOR_ROWS = 0.8


def is_tensor(X: Any) -> bool:
    """Whether X is a PyTorch tensor."""
    return type(X).__module__.partition(".")[0] == "torch" and hasattr(X, "device")


def on_device(X: Any) -> Any:
    """X as a tensor, where it lies on a device other than the host; else None.

    CuPy's arrays are taken as tensors, without a copy.
    """
    if type(X).__module__.partition(".")[0] == "cupy":
        import torch

        return torch.as_tensor(X)
    return X if is_tensor(X) and X.device.type != "cpu" else None


def as_numpy(values: Any) -> Any:
    """Values on the host: those of a tensor, or an array as it is."""
    if is_tensor(values):
        # NumPy has no type for bfloat16, whose numbers float32 has all of.
        half = str(values.dtype) == "torch.bfloat16"
        return (values.float() if half else values).detach().cpu().numpy()
    return np.asarray(values)


def on_host(values: Any) -> Any:
    """A tensor, or an array of another library on the host, as a NumPy array.

    What isn't one of these, such as a list or a dataframe, is returned as it is.
    """
    if is_tensor(values):
        return as_numpy(values)
    if hasattr(values, "__array_namespace__") and not isinstance(values, np.ndarray):
        return np.asarray(values)
    return unmasked(values)


def like(X: Any, values: Any) -> Any:
    """An array as a tensor of another one's type, where that lies."""
    import torch

    return torch.as_tensor(np.asarray(values), dtype=X.dtype, device=X.device)


def check_rows(X: Any, n_columns: int, *, allow_nan: bool) -> None:
    """Refuse a tensor of another width, with infinities, or with NaN."""
    if X.ndim != 2 or X.shape[1] != n_columns:
        raise ValueError(
            f"X has shape {tuple(X.shape)}, and the ratio was fitted to {n_columns} "
            "columns."
        )
    odd = X.isinf() if allow_nan else ~X.isfinite()
    if bool(odd.any()):
        what = "infinity" if allow_nan else "NaN or infinity"
        raise ValueError(f"Input X contains {what}. Replace it by numbers.")


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
        raise MemoryError(
            f"The memory of {tensor.device} doesn't suffice for a fit of {n_rows} rows "
            f"× {n_columns} columns{_most_rows(tensor)}. Bring fewer rows, or leave "
            "them on the host: fit X.cpu(), or files by scan_parquet(…)."
        ) from error


def _most_rows(X: Any) -> str:
    """How many rows a device has memory for, where it says how much it has."""
    import torch

    if X.device.type != "cuda":
        return ""
    _, memory = torch.cuda.mem_get_info(X.device)
    rows = int(PART_FOR_ROWS * memory / (X.shape[1] * X.element_size()))
    return f": about {rows} rows fit into its {memory / 1e9:.0f} GB"
