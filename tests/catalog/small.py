"""A two-model, two-dimension catalog that the tests of this folder edit."""

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.catalog import parse_catalog

SMALL = """\
schema: hydra.catalog/v1
name: small
dimensions: [reasoning, debugging]
predictor:
  name: tiny
  fingerprint: abc123
bands:
  reasoning: [0.2, 0.8]
  debugging: [0.1, 0.5]
policy:
  tau: 0.24
  weights: {reasoning: 1, debugging: 1}
  cost_basis: list_price
  price_ratio: 3
  sticky: {mode: per_session, threshold: 0.0, ttl_s: 3600}
  health_floor: 0.1
evidence:
  benchmarks:
    - id: puzzles
      importance: 0.6
      weights: {reasoning: 0.9, debugging: 0.2}
    - id: bugs
      importance: 0.4
      weights: {debugging: 0.8}
models:
  - id: cheap
    provider: acme
    status: active
    input_usd_per_mtok: 0.31  # from the price page
    output_usd_per_mtok: 4.50
    context_window: 128000
    vision: false
    tools: true
    scores: {puzzles: 0.5, bugs: 0.4}
    capabilities: derived
    price_source: price page
    price_date: 2026-01-01
  - id: strong
    provider: acme
    status: active
    input_usd_per_mtok: 1.19
    output_usd_per_mtok: 15.00
    context_window: 200000
    vision: true
    tools: true
    scores: {puzzles: 0.9, bugs: 0.8}
    capabilities: derived
    price_source: price page
    price_date: 2026-01-01
"""


def edited(*edits: tuple[str, str]) -> str:
    """SMALL with each (old, new) applied once; `old` must be there."""
    text = SMALL
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def assert_told(old: str, new: str, place: str, message: str, remedy: str) -> None:
    """SMALL with `old` replaced by `new` is refused with a problem that says all three."""
    with pytest.raises(CatalogError) as caught:
        parse_catalog(edited((old, new)), "pool.yaml")
    assert str(caught.value).startswith("pool.yaml: ")
    hits = [p for p in caught.value.problems if place in p.place and message in p.message]
    assert hits, str(caught.value)
    assert remedy in hits[0].remedy
