"""Arrays of an outcome model's files: read without pickle, within limits, finite."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import IO, Final

import numpy as np

from hydra_core.errors import OutcomeModelError, Problem
from hydra_core.outcome_model.manifest import HEADS, REMEDY

__all__ = ["Arrays", "read_arrays"]

Arrays = Mapping[str, np.ndarray]
#: Unpacked, all arrays of a file together; what 100,000 queries need is a tenth of it.
_MAX_BYTES: Final = 1 << 30
_MAX_ARRAYS: Final = 1_000
_HEADERS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_arrays(raw: bytes, name: str, source: str) -> Arrays:
    """The arrays in the bytes of an .npz file, read-only.

    Raises:
        OutcomeModelError: It is none, needs pickle, is larger unpacked than the limit, or holds
            numbers that are not finite where every number must be.
    """
    try:
        _require_within_limits(raw)
        with np.load(BytesIO(raw), allow_pickle=False) as loaded:
            arrays = {key: loaded[key] for key in loaded.files}
    except (ValueError, OSError, EOFError, KeyError, MemoryError, zipfile.BadZipFile) as error:
        problem = Problem(name, f"is not a file of arrays: {error}", REMEDY)
        raise OutcomeModelError(source, [problem]) from error
    except (NotImplementedError, RuntimeError) as error:  # packed in another way, or encrypted
        problem = Problem(name, f"cannot be unpacked: {error}", REMEDY)
        raise OutcomeModelError(source, [problem]) from error
    for key, array in arrays.items():
        # what was left out of cross-fitting is NaN in learned.npz; a leaf's threshold is infinity
        if name == HEADS and not _sound(key, array):
            problem = Problem(f"{name}: {key}", "holds what is no finite number", REMEDY)
            raise OutcomeModelError(source, [problem])
        array.setflags(write=False)
    return arrays


def _sound(key: str, array: np.ndarray) -> bool:
    if array.dtype.kind == "U":
        return False
    infinite = key.endswith(".threshold")
    return bool((~np.isnan(array) if infinite else np.isfinite(array)).all())


def _require_within_limits(raw: bytes) -> None:
    """Every array is as long as its header says, before room for it is asked for.

    Raises:
        ValueError: Says which is not.
    """
    with zipfile.ZipFile(BytesIO(raw)) as packed:
        members = packed.infolist()
        if len(members) > _MAX_ARRAYS or sum(one.file_size for one in members) > _MAX_BYTES:
            raise ValueError(f"more than {_MAX_ARRAYS:,} arrays or {_MAX_BYTES:,} bytes unpacked")
        if len({one.filename for one in members}) < len(members):
            raise ValueError("two arrays have one name")
        for one in members:
            with packed.open(one) as stream:
                told = _length(stream)
            if told != one.file_size:
                raise ValueError(f"{one.filename:.80} is not as long as its header says")


def _length(stream: IO[bytes]) -> int:
    """Bytes that an .npy file has by its header."""
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"arrays of version {version} are not read")
    shape, _, dtype = _HEADERS[version](stream)
    if dtype.kind not in "biufU":
        raise ValueError(f"arrays of {dtype} are not read")
    size = dtype.itemsize
    for axis in shape:
        size *= axis
    return stream.tell() + size
