"""Catalogs: YAML to validated nouns and back, Algorithm 1, edits in place, differences in words."""

from hydra_core.catalog.binding import rebind, require_bundle
from hydra_core.catalog.diff import Change, ChangeKind, semantic_diff
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.profiles import (
    blended_price,
    capabilities,
    compensated_weights,
    contributions,
    is_routable,
    pool,
    raw_capabilities,
    to_band,
)
from hydra_core.catalog.schema import SCHEMA, load_catalog, parse_catalog, read_catalog_text

__all__ = [
    "SCHEMA",
    "CatalogDocument",
    "Change",
    "ChangeKind",
    "blended_price",
    "capabilities",
    "compensated_weights",
    "contributions",
    "is_routable",
    "load_catalog",
    "parse_catalog",
    "pool",
    "raw_capabilities",
    "read_catalog_text",
    "rebind",
    "require_bundle",
    "semantic_diff",
    "to_band",
]
