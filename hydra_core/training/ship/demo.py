"""The attacks of a model card, on the demo messages; and a shipped card brought up to date."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hydra_core.evaluation.evalset.evalset import load_evalset
from hydra_core.evaluation.robustness.attack import set_messages
from hydra_core.evaluation.robustness.findings import RoutedAttacks
from hydra_core.evaluation.robustness.probe import bound_catalog, probed, routed
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.bundle_writing import rewrite_manifest
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.shipped import SAMPLE_DATA
from hydra_core.training.ship.card import attack_quality, with_claims

__all__ = ["demo_attacks", "refresh_card"]

CARD = "MODEL_CARD.md"


def demo_attacks(
    predictor: Predictor,
    catalog: Path,
    *,
    most: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RoutedAttacks:
    """Claims of difficulty on the demo messages, as `probe` makes them.

    Args:
        most: Only so many messages, drawn at random.
    """
    texts, languages = set_messages(load_evalset(SAMPLE_DATA / "console_demo"), most)
    found = probed(predictor, texts, languages, progress=progress)
    return routed(found, bound_catalog(catalog, predictor.bundle))


def refresh_card(bundle: Bundle, attacks: RoutedAttacks) -> Bundle:
    """Write a bundle's card and figures on claims anew; graph and fingerprint stay as they are.

    Raises:
        BundleError: The manifest cannot be written; it is left as it was.
        ValueError: The card has no section on claims.
    """
    path = bundle.path / CARD
    path.write_text(with_claims(path.read_text("utf-8"), attacks), "utf-8")
    return rewrite_manifest(
        bundle, quality={**bundle.quality, "suffix_attacks": attack_quality(attacks)}
    )
