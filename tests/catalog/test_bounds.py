"""A catalog that is valid can route: what would overflow while routing is refused when read."""

import pytest

from hydra_core.base.errors import ProblemsError
from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog import parse_catalog

TEXT = (CATALOGS / "paper_five.yaml").read_text()
CHANGES = {
    "price": ("input_usd_per_mtok: 0.31", "input_usd_per_mtok: 1e308"),
    "weight": ("    reasoning: 1.0", "    reasoning: 1e308"),
    "tiny weight": ("    reasoning: 1.0", "    reasoning: 5e-324"),
    "tau": ("tau: 0.24", "tau: 1e300"),
    "ratio": ("price_ratio: 3", "price_ratio: 1e300"),
    "band": ("reasoning: [0.0001, 0.4597]", "reasoning: [0.0, 5e-324]"),
    "narrow band": ("reasoning: [0.0001, 0.4597]", "reasoning: [0.3, 0.3000001]"),
    "importance": ("importance: 0.043", "importance: 1e308"),
    "auto": ("- id: gpt-5.4-mini", "- id: auto"),
    "AUTO": ("- id: gpt-5.4-mini", "- id: AUTO"),
    "a look-alike of auto": ("- id: gpt-5.4-mini", "- id: \u0430uto"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_could_not_be_routed_with_is_refused(change):
    old, new = change
    assert old in TEXT
    with pytest.raises(ProblemsError):
        parse_catalog(TEXT.replace(old, new, 1))
