"""Memory that a process keeps for the next run."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from multiprocessing import parent_process

# As glibc's malloc.h has them.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


@cache
def keep_freed_memory() -> None:
    """Let a process that only computes runs keep the memory that arrays let go of.

    glibc returns large arrays to the system, which hands out zeroed pages for the next
    ones: a seventh of the time of a run on the Weather data. Where the C library is
    another, or the process is the user's own, nothing is changed.
    """
    if sys.platform == "linux" and parent_process() is not None:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(M_MMAP_MAX, 0)
            mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
