"""What a demo works on: links to the eval sets, a copy of the store, the story's catalog.

No streamlit. Files of eval sets are only ever replaced, never written into, so hard links are
copies; the store is copied row by row.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hydra_core.base.digests import file_sha256
from hydra_core.base.errors import HydraError, StoreError
from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.base.types import Rule
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.identifiers import skeleton
from hydra_core.catalog.schema import parse_catalog, read_catalog_text
from hydra_core.evalsets.format import MANIFEST
from hydra_core.store.roles import Actor
from hydra_core.store.store import Store

#: The samples of a demo, below its folder.
SAMPLES: Final = "samples"
#: The eval set and the catalog of the story, with real outcomes.
EVALSET: Final = "mixed_2024"
CATALOG: Final = "mixed_2024"
#: The pinned point that says where the story began, for comparing with it later.
BEFORE: Final = "before learning"
_NAME: Final = "demo"
_NOTE: Final = "Where the story begins: routed by profiles, nothing learned yet"


def fill(folder: Path, workspace: Path, store: Store, actor: Actor) -> tuple[Store, str]:
    """Copy a workspace into an empty folder and publish the story's catalog in the copy.

    Roles, logs and what others have learned stay where they are.

    Args:
        store: The workspace's.
        actor: A publisher; the story's catalog carries the name.

    Returns:
        The copy's store and its name for the story's catalog.

    Raises:
        HydraError: The workspace cannot be read, or there is no room for a copy.
    """
    try:
        for source, target in ((SAMPLE_DATA, SAMPLES), (workspace / "evalsets", "evalsets")):
            _link_sets(source, folder / target)
        for file in sorted((workspace / "catalogs").glob("*.yaml")):
            (folder / "catalogs").mkdir(exist_ok=True)
            shutil.copy2(file, folder / "catalogs")
    except OSError as error:
        raise StoreError(f"the workspace cannot be copied for a demo: {error}") from error
    copy = store.copied_to(folder)
    try:
        text = untaught(read_catalog_text(CATALOGS / f"{CATALOG}.yaml"))
        known = [*copy.catalogs(), *(file.stem for file in CATALOGS.glob("*.yaml"))]
        name = _free(_NAME, known)
        copy.publish(name, text, actor=actor, base_revision=0, note=_NOTE)
        policy = parse_catalog(text, source=name).policy
        copy.points.pin(
            name, BEFORE, revision=1, tau=policy.tau, weights=policy.weights, actor=actor,
            evalset_digest=file_sha256(folder / SAMPLES / EVALSET / MANIFEST),
        )  # fmt: skip
    except HydraError:
        copy.close()
        raise
    return copy, name


def untaught(text: str) -> str:
    """A catalog's text without what predicts, and V: as it was before anything was learned.

    Raises:
        CatalogError: It has no outcome model or no success profiles.
    """
    document = CatalogDocument.parse(text, CATALOG)
    for name in ("outcome_model", "success_profiles"):
        document.remove(name)
    for name in ("value_usd", "success_from"):
        document.remove("policy", name)
    document.set("policy", "rule", Rule.SHORTFALL.value)
    return document.text()


def _link_sets(root: Path, target: Path) -> None:
    """Link the files of every set under `root`; of a linked folder, what it points to."""
    for path in sorted(root.glob("*")) if root.is_dir() else ():
        if not path.name.startswith(".") and (path / MANIFEST).is_file():
            unfinished = shutil.ignore_patterns(".*")
            shutil.copytree(path, target / path.name, copy_function=_link, ignore=unfinished)


def _link(source: str, target: str) -> None:
    try:
        os.link(os.path.realpath(source), target)
    except OSError:  # another disk, or a file system without hard links
        shutil.copy2(source, target)


def _free(name: str, taken: Iterable[str]) -> str:
    """`name`, or with the first number that nobody's catalog has."""
    seen = {skeleton(one) for one in taken}
    names = (name, *(f"{name}_{number}" for number in range(2, len(seen) + 3)))
    return next(one for one in names if skeleton(one) not in seen)
