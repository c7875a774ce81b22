"""A dry run of a configuration: is it valid, does it fit together, what would it do?"""

from __future__ import annotations

import os
from datetime import date
from typing import Any

from hydra_core.base.types import Catalog
from hydra_core.catalog import pool, require_bundle
from hydra_core.predictor.bundle import Bundle
from hydra_core.routing.router import Router
from hydra_core.server.upstream.file import Upstreams


def checked(catalog: Catalog, bundle: Bundle, upstreams: Upstreams | None) -> dict[str, Any]:
    """What a service would say about itself with this configuration.

    Raises:
        HydraError: The catalog does not fit the bundle, or a model cannot be asked.
    """
    require_bundle(catalog, bundle.fingerprint)
    Router(catalog)
    models = pool(catalog, today=date.today()).ids
    report: dict[str, Any] = {
        "catalog": catalog.name,
        "digest": catalog.digest,
        "models": list(models),
        "rule": catalog.policy.rule.value,
        "knob": catalog.policy.knob,
        "sticky": catalog.policy.sticky.mode.value,
    }
    if upstreams is not None:
        upstreams.require(models, os.environ)
        report["upstreams"] = {name: upstreams.by_model[name].name for name in models}
    return report
