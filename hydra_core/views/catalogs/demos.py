"""The paper's two catalog events on sample data, as what-ifs that touch no draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hydra_core.types import Catalog

__all__ = ["DEMOS", "Demo", "demo_catalogs", "fits_demo"]

_START: Final = ("claude-haiku-4.5", "claude-sonnet-4.6", "gpt-5.4")
_ADDED: Final = "gpt-5.3-codex"


@dataclass(frozen=True, slots=True)
class Demo:
    """An event: the models of the pool before and after.

    Attributes:
        tau: Where Haiku carries about half the traffic of the pool before.
        reported: What the paper reports for it, on its own queries.
    """

    name: str
    icon: str
    text: str
    reported: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    tau: float = 1.0


DEMOS: Final = {
    "remove": Demo(
        "Demo: remove Haiku",
        ":material/person_remove:",
        "A pool of claude-haiku-4.5, claude-sonnet-4.6 and gpt-5.4 loses Haiku.",
        "On its own queries the paper reports QR 98.1 -> 95.7 %.",
        _START,
        _START[1:],
    ),
    "add": Demo(
        "Demo: add a mid-tier model",
        ":material/person_add:",
        "A pool of claude-haiku-4.5, claude-sonnet-4.6 and gpt-5.4 gains gpt-5.3-codex.",
        "On its own queries the paper reports QR 98.1 -> 98.5 % for a new mid-tier model.",
        _START,
        (*_START, _ADDED),
    ),
}


def fits_demo(catalog: Catalog, models: Sequence[str]) -> bool:
    """Whether catalog and eval set have all the models of the demos."""
    have = {model.id for model in catalog.models} & set(models)
    return {*_START, _ADDED} <= have


def demo_catalogs(catalog: Catalog, demo: Demo) -> tuple[Catalog, Catalog]:
    """The catalog with only the models before, and with only those after."""
    return _only(catalog, demo.before, "before"), _only(catalog, demo.after, "after")


def _only(catalog: Catalog, models: Sequence[str], label: str) -> Catalog:
    kept = tuple(model for model in catalog.models if model.id in models)
    digest = f"{catalog.digest}:{','.join(model.id for model in kept)}"
    return replace(catalog, models=kept, name=label, digest=digest)
