"""Which predictor bundle a catalog belongs to, and how it is moved to another one.

Capabilities live on one predictor's score bands. With another predictor the same numbers mean
something else, so using the pair is an error, never a warning.
"""

from collections.abc import Mapping, Sequence
from shlex import quote

from hydra_core.base.errors import MismatchError
from hydra_core.base.types import Band, Catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.schema import parse_catalog


def require_bundle(catalog: Catalog, fingerprint: str) -> None:
    """Make sure that `catalog` was made for the bundle with this fingerprint.

    Raises:
        MismatchError: It was made for another one; the message offers to rebind it.
    """
    if catalog.predictor_fingerprint == fingerprint:
        return
    source = catalog.source or catalog.name
    raise MismatchError(
        f"{source}: its score bands are those of predictor {catalog.predictor!r} (fingerprint "
        f"{_short(catalog.predictor_fingerprint)}), but the scores come from "
        f"{_short(fingerprint)}. Capabilities and tau do not hold for other scores. Choose the "
        "bundle that the catalog was made for, or recompute it for the other bundle: "
        f"hydra-router rebind {quote(source)}. Where it is published, publish it again"
    )


def _short(fingerprint: str) -> str:
    return fingerprint if len(fingerprint) <= 16 else f"{fingerprint[:12]}..."


def rebind(
    text: str,
    bundle_name: str,
    fingerprint: str,
    bands: Mapping[str, Band] | Sequence[Band],
    *,
    keep_places: bool = False,
) -> str:
    """The catalog text moved to another bundle: predictor and bands replaced, all else kept.

    Derived capabilities follow the new bands when the text is loaded. tau and the weights are kept
    as they stand and should be tuned anew.

    Args:
        bands: The bundle's bands by dimension, or in the catalog's dimension order.
        keep_places: Give capabilities that are set by hand the same place on the new bands.

    Raises:
        CatalogError: `text` is not a valid catalog.
        MismatchError: The dimensions differ, or capabilities are set by hand: those are places on
            the old bands, and cannot be recomputed from evidence. Or success profiles were fitted
            to the requirements of another predictor.
    """
    catalog = parse_catalog(text)
    if catalog.success_profiles is not None and fingerprint != catalog.predictor_fingerprint:
        raise MismatchError(
            f"catalog {catalog.name!r}: its success profiles were fitted to the requirements of "
            f"predictor {catalog.predictor!r} and do not hold for another's. Take "
            "'success_profiles', and what of the policy names them, out of the file; then rebind "
            "it and fit them again with `hydra-router fit SET --as success`"
        )
    by_hand = [model.id for model in catalog.models if model.overrides]
    if by_hand and not keep_places:
        raise MismatchError(
            f"catalog {catalog.name!r}: the capabilities of {', '.join(by_hand)} are set by "
            f"hand on the score bands of predictor {catalog.predictor!r} and cannot be recomputed; "
            "set them to 'derived' first"
        )
    document = CatalogDocument.parse(text)
    document.set("predictor", "name", bundle_name)
    document.set("predictor", "fingerprint", fingerprint)
    for old, (dimension, band) in zip(
        catalog.bands, _by_dimension(catalog, bands).items(), strict=True
    ):
        document.set("bands", dimension, [band.lo, band.hi])
        for model in catalog.models:
            if dimension in model.overrides:
                place = (model.overrides[dimension] - old.lo) / old.width
                value = min(max(band.lo + place * band.width, 0.0), 1.0)
                document.set("models", model.id, "capabilities", dimension, round(value, 6))
    rebound = document.text()
    parse_catalog(rebound)
    return rebound


def _by_dimension(catalog: Catalog, bands: Mapping[str, Band] | Sequence[Band]) -> dict[str, Band]:
    wanted = catalog.dimensions
    if not isinstance(bands, Mapping):
        if len(bands) != len(wanted):
            raise MismatchError(
                f"catalog {catalog.name!r} has {len(wanted)} dimensions, the bundle {len(bands)}"
            )
        return dict(zip(wanted, bands, strict=True))
    if set(bands) != set(wanted):
        raise MismatchError(
            f"catalog {catalog.name!r} has the dimensions {', '.join(wanted)}, the bundle "
            f"{', '.join(bands)}; a catalog needs a predictor with the same ones"
        )
    return {dimension: bands[dimension] for dimension in wanted}
