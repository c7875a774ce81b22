"""From what a catalog names to the outcome model itself, opened once."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from hydra_core.base.errors import MismatchError, OutcomeModelError, Problem
from hydra_core.base.shipped import CATALOGS
from hydra_core.base.types import Catalog, OutcomeModelRef
from hydra_core.base.workspace import workspace_folder
from hydra_core.outcome_model.format import MANIFEST, load_outcome_model
from hydra_core.outcome_model.model import OutcomeModel


def catalog_outcome_model(catalog: Catalog) -> OutcomeModel:
    """The outcome model that a catalog names, checked against its bundle.

    Raises:
        OutcomeModelError: The catalog names none; it is missing, damaged or another one.
        MismatchError: It was learned with another predictor bundle.
    """
    if catalog.outcome_model is None:
        remedy = "learn one: hydra-router learn SET --catalog C.yaml --out DIR"
        message = "names no outcome model, and the value rule needs one"
        raise OutcomeModelError(catalog.name, [Problem("outcome_model", message, remedy)])
    model = _opened(_found(catalog, catalog.outcome_model), catalog.outcome_model.sha256)
    require_same_bundle(catalog, model)
    return model


def require_same_bundle(catalog: Catalog, model: OutcomeModel) -> None:
    """An outcome model reads the vectors of one bundle, and works with no other.

    Raises:
        MismatchError: The catalog is bound to another bundle.
    """
    if model.fingerprint != catalog.predictor_fingerprint:
        raise MismatchError(
            f"outcome model {model.path.name!r} was learned with the predictor bundle "
            f"{model.fingerprint[:12]}, catalog {catalog.name!r} is bound to "
            f"{catalog.predictor_fingerprint[:12]}: learn it again with this bundle"
        )


def _found(catalog: Catalog, named: OutcomeModelRef) -> Path:
    own = [Path(catalog.folder)] if catalog.folder else []
    # last the shipped catalogs: a published revision of one lies in no folder
    folders = [*own, workspace_folder(), Path.cwd(), CATALOGS]
    places = [folder / named.path for folder in folders]
    for place in places:
        if (place / MANIFEST).is_file():
            return place
    looked = ", ".join(dict.fromkeys(str(place) for place in places))
    remedy = "learn it again, or correct the path in the catalog"
    problem = Problem("outcome_model: path", f"{named.path!r} is not there ({looked})", remedy)
    raise OutcomeModelError(catalog.name, [problem])


@lru_cache(maxsize=8)
def _opened(path: Path, sha256: str) -> OutcomeModel:
    return load_outcome_model(path, sha256=sha256)
