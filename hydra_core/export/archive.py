"""A release with its outcome model beside it: one zip file that a router can be started from."""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePath
from typing import Final

from hydra_core.catalog import CatalogDocument, parse_catalog
from hydra_core.export.release import Provenance, release_text
from hydra_core.outcome_model.find import FOLDER, catalog_outcome_model
from hydra_core.outcome_model.format import FIGURES, HEADS, LEARNED, MANIFEST
from hydra_core.types import Catalog

__all__ = ["portable", "release_archive"]

_MOMENT: Final = (1980, 1, 1, 0, 0, 0)


def portable(text: str) -> str:
    """The catalog text with a path to its outcome model that holds wherever both are copied to.

    A path within the catalog's own folder stays as it is, and so does the text.

    Raises:
        CatalogError: `text` is not a valid catalog.
    """
    named = parse_catalog(text, source="the release").outcome_model
    if named is None:
        return text
    path = PurePath(named.path)
    if not path.is_absolute() and ".." not in path.parts:
        return text
    document = CatalogDocument.parse(text, "the release")
    document.set("outcome_model", "path", f"{FOLDER}/{path.name}")
    return document.text()


def release_archive(text: str, catalog: Catalog, provenance: Provenance, name: str) -> bytes:
    """The release as `<name>.yaml`, and the folder of its outcome model where it says it lies.

    Args:
        text: The catalog's own text.
        catalog: The same, with the folder that its paths start from.

    Raises:
        CatalogError: `text` is not a valid catalog.
        OutcomeModelError: The outcome model is missing, damaged or another one.
        MismatchError: It was learned with another predictor bundle.
    """
    model = catalog_outcome_model(catalog)
    moved = portable(text)
    named = parse_catalog(moved, source="the release").outcome_model
    assert named is not None
    files = {f"{name}.yaml": release_text(moved, provenance).encode()}
    for file in (MANIFEST, HEADS, LEARNED, FIGURES):
        files[f"{PurePath(named.path).as_posix()}/{file}"] = (model.path / file).read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, _MOMENT), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()
