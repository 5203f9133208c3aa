"""Whether a table fits into memory."""

from __future__ import annotations

from pathlib import Path

from missratio._files import kind_of

# Bytes that a cell takes where a table is read whole: as in the file, as a number,
# and in the copies that a fit makes.
CELL_BYTES = 32
# Of the memory that is free, a table read whole may take this share.
SHARE = 0.5


def is_large(path: Path) -> bool:
    """Whether a Parquet file, or a folder of them, is to be read in passes."""
    if path.is_dir():
        return True
    if not path.is_file() or kind_of(path) != "parquet":
        return False
    from pyarrow import ArrowException, parquet

    try:
        meta = parquet.read_metadata(path)
    except (ArrowException, OSError):
        # Whoever reads it says what is wrong.
        return False
    size = meta.num_rows * meta.num_columns * CELL_BYTES
    free = free_memory()
    return free is not None and size > SHARE * free


def free_memory() -> int | None:
    """Bytes that a process may still take; None where that can't be told."""
    found = [value for value in (_of_machine(), _of_group()) if value is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return None


def _of_group(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a container's limit leaves."""
    try:
        limit = int((folder / "memory.max").read_text(encoding="ascii"))
        return max(limit - int((folder / "memory.current").read_text("ascii")), 0)
    except (OSError, ValueError):
        return None
