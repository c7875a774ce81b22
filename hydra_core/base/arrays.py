"""Arrays that many readers share."""

from typing import TypeVar

import numpy as np

_Array = TypeVar("_Array", bound=np.ndarray)


def read_only(values: _Array) -> _Array:
    """The array, which nobody may write to from now on."""
    values.setflags(write=False)
    return values
