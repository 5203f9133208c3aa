"""Array types used throughout."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# Of double precision unless the user's table is of single precision.
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Names: TypeAlias = NDArray[np.object_]
