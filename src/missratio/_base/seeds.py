"""What scikit-learn calls a random state, never the global one."""

from typing import Any

import numpy as np


def generator(random_state: Any) -> np.random.Generator:
    """A generator: the one given, or a new one from a seed, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)


def entropy(random_state: Any) -> Any:
    """What a `SeedSequence` takes: an int, or None for fresh entropy."""
    if isinstance(random_state, np.random.RandomState):
        return random_state.randint(2**31)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return random_state
