"""How far a message lies from those that a predictor was trained on.

A bundle may bring centres of the text vectors of its training messages, and the distance to the
nearest one that nearly all held-out ordinary messages keep. The scores of a message beyond it say
little. The flag decides nothing; it is recorded. `reference.npz` holds plain numbers::

    centres   (c, d) float16, c at most 1,024
    limit     () float64, the distance that a share `kept` of held-out messages does not pass
    kept      () float64, 0.995 in the shipped bundles
"""

import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np

from hydra_core.base.arrays import read_only
from hydra_core.base.errors import BundleError
from hydra_core.base.types import Float32Array
from hydra_core.predictor.bundle import Bundle

#: Usual name of the file.
REFERENCE: Final = "reference.npz"
_NAMES: Final = {"centres", "limit", "kept"}
_MOST_CENTRES: Final = 1024
_MOST_BYTES: Final = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What a bundle's text vectors usually are.

    Attributes:
        centres: (c, d).
        limit: Distance to the nearest centre that ordinary messages keep.
        kept: Share of held-out ordinary messages that keep it.
    """

    centres: Float32Array
    limit: float
    kept: float

    def distance(self, vector: Float32Array) -> float:
        """Euclidean distance of a vector (d,) to the nearest centre, in limits.

        Above 1 the message is unlike those that the predictor was trained on.
        """
        gaps = self.centres - vector
        return float(np.sqrt(np.einsum("cd,cd->c", gaps, gaps).min())) / self.limit


def open_reference(bundle: Bundle) -> Reference | None:
    """The bundle's reference, or None; BundleError where the file is not what it must be."""
    if not bundle.reference:
        return None
    try:
        return _read((bundle.path / bundle.reference).read_bytes(), bundle.vectors)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        remedy = "install the bundle again, or leave `reference` out of bundle.yaml: no flag then"
        raise BundleError.of(
            str(bundle.path), f"cannot be used: {error}", remedy, place=bundle.reference
        ) from error


def write_reference(path: Path, reference: Reference) -> None:
    """Write the file; centres in half precision."""
    half = reference.centres.astype(np.float16)
    with path.open("wb") as file:
        np.savez(file, centres=half, limit=reference.limit, kept=reference.kept)


def _read(raw: bytes, width: int) -> Reference:
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
            raise ValueError(f"holds more than {_MOST_BYTES:,} bytes")
    with np.load(BytesIO(raw), allow_pickle=False) as found:
        if set(found.files) != _NAMES:
            raise ValueError(f"holds {sorted(found.files)[:5]}, not {sorted(_NAMES)}")
        centres, limit, kept = (np.asarray(found[name]) for name in ("centres", "limit", "kept"))
    if any(array.dtype.kind != "f" for array in (centres, limit, kept)):
        raise ValueError("holds something else than decimal numbers")
    if centres.ndim != 2 or centres.shape[1] != width or not 0 < len(centres) <= _MOST_CENTRES:
        raise ValueError(f"centres are {centres.shape}, not (1 to {_MOST_CENTRES:,}, {width})")
    if limit.shape or kept.shape or not limit > 0 or not 0 < kept < 1:
        raise ValueError("limit must be one number above 0, kept one between 0 and 1")
    if not (np.isfinite(centres).all() and np.isfinite(limit)):
        raise ValueError("holds numbers that are not finite")
    return Reference(read_only(centres.astype(np.float32)), float(limit), float(kept))
