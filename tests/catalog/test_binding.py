"""A catalog belongs to one predictor bundle, and moves to another only through its evidence."""

import pytest

from hydra_core.base.errors import CatalogError, MismatchError
from hydra_core.base.shipped import CATALOGS
from hydra_core.base.types import Band
from hydra_core.catalog import capabilities, parse_catalog, rebind, require_bundle
from tests.catalog.small import SMALL, edited

BANDS = {"reasoning": Band(0.1, 0.9), "debugging": Band(0.25, 0.75)}


def test_the_bundle_it_was_made_for_is_accepted():
    require_bundle(parse_catalog(SMALL), "abc123")


def test_another_bundle_is_an_error_that_offers_to_rebind():
    with pytest.raises(MismatchError, match=r"hydra-router rebind pool\.yaml") as caught:
        require_bundle(parse_catalog(SMALL, "pool.yaml"), "f" * 64)
    assert "abc123" in str(caught.value)
    assert "ffffffffffff..." in str(caught.value)


def test_rebinding_replaces_predictor_and_bands_and_keeps_all_else():
    text = rebind(SMALL, "other", "f" * 64, BANDS)
    assert text == edited(
        ("name: tiny", "name: other"),
        ("abc123", "f" * 64),
        ("[0.2, 0.8]", "[0.1, 0.9]"),
        ("[0.1, 0.5]", "[0.25, 0.75]"),
    )
    assert capabilities(parse_catalog(text)).tolist() == [[0.1, 0.25], [0.9, 0.75]]
    require_bundle(parse_catalog(text), "f" * 64)


def test_success_profiles_do_not_go_to_another_predictor():
    text = (CATALOGS / "mixed_2024.yaml").read_text("utf-8")
    catalog = parse_catalog(text)
    with pytest.raises(MismatchError, match="success profiles were fitted to the requirements"):
        rebind(text, "other", "f" * 64, catalog.bands)
    bands = [Band(0.0, 0.9)] * 4
    same = rebind(text, catalog.predictor, catalog.predictor_fingerprint, bands)
    assert parse_catalog(same).success_profiles == catalog.success_profiles


def test_bands_may_come_in_the_catalogs_order():
    assert rebind(SMALL, "other", "f", tuple(BANDS.values())) == rebind(SMALL, "other", "f", BANDS)


def test_a_fingerprint_of_digits_stays_text():
    text = rebind(SMALL, "other", "0" * 64, BANDS)
    assert parse_catalog(text).predictor_fingerprint == "0" * 64


def test_other_dimensions_and_values_set_by_hand_are_refused():
    with pytest.raises(MismatchError, match="same ones"):
        rebind(SMALL, "other", "f", {"reasoning": Band(0, 1), "speed": Band(0, 1)})
    with pytest.raises(MismatchError, match="2 dimensions, the bundle 1"):
        rebind(SMALL, "other", "f", [Band(0, 1)])
    by_hand = edited(("capabilities: derived", "capabilities: {debugging: 0.2}"))
    with pytest.raises(MismatchError, match="capabilities of cheap are set by hand"):
        rebind(by_hand, "other", "f", BANDS)


def test_values_set_by_hand_keep_their_place_on_the_bands_where_asked():
    by_hand = edited(("capabilities: derived", "capabilities: {debugging: 0.2}"))
    text = rebind(by_hand, "other", "f" * 64, BANDS, keep_places=True)
    (model,) = [one for one in parse_catalog(text).models if one.overrides]
    assert model.overrides["debugging"] == pytest.approx(0.25 + 0.25 * 0.5)


def test_bands_that_are_none_are_refused():
    with pytest.raises(CatalogError, match="lo must be < hi"):
        rebind(SMALL, "other", "f", [Band(0.5, 0.5), Band(0, 1)])
