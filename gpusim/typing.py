"""Names of types that everything shares."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
