"""What a valid catalog is, and how all faults of an invalid one are told together."""

from datetime import date
from pathlib import Path

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.types import CostBasis, ModelStatus, StickyMode
from hydra_core.catalog import load_catalog, parse_catalog
from tests.catalog.small import SMALL, edited


def test_the_small_catalog_is_valid_and_typed():
    catalog = parse_catalog(SMALL, "pool.yaml")
    assert catalog.dimensions == ("reasoning", "debugging")
    assert catalog.bands[1].width == pytest.approx(0.4)
    assert catalog.policy.cost_basis is CostBasis.LIST_PRICE
    assert catalog.policy.sticky.mode is StickyMode.PER_SESSION
    assert catalog.benchmarks[1].weights == (0.0, 0.8)
    cheap = catalog.model("cheap")
    assert cheap.status is ModelStatus.ACTIVE
    assert (cheap.input_usd_per_mtok, cheap.output_usd_per_mtok) == (0.31, 4.5)
    assert cheap.price_date == date(2026, 1, 1)
    assert catalog.source == "pool.yaml"
    assert len(catalog.digest) == 64


def test_all_problems_come_at_once_across_sections():
    text = edited(
        ("name: small", "nmae: small"),
        ("tau: 0.24", "tau: -1"),
        ("[0.1, 0.5]", "[0.5, 0.1]"),
        ("importance: 0.4", "importance: x"),
        ("input_usd_per_mtok: 0.31", "input_usd_per_mtok: -5"),
        ("scores: {puzzles: 0.9, bugs: 0.8}", "scores: {puzzles: 0.9}"),
        ("vision: true", "vision: 1\n    vision: 1"),
    )
    text = text.replace("importance: x", "importance: 0.4", 1)
    with pytest.raises(CatalogError) as caught:
        parse_catalog(text)
    places = " | ".join(problem.place for problem in caught.value.problems)
    wanted = ("line 47", "nmae", "name", "policy.tau", "bands.debugging", "input_usd", "scores")
    for place in (*wanted, "vision"):
        assert place in places
    assert str(caught.value).splitlines()[0] == "catalog: 8 problems"


def test_one_problem_reads_as_one_line():
    with pytest.raises(CatalogError) as caught:
        parse_catalog(edited(("input_usd_per_mtok: 1.19", "input_usd_per_mtok: -5")), "pool.yaml")
    assert str(caught.value) == (
        "pool.yaml: models[1] 'strong': input_usd_per_mtok (line 41): must be > 0, got -5 "
        "(give the price in USD per million tokens; a self-hosted model may state its cost; "
        "of one that costs nothing 0 for every price, and free in price_source)"
    )


def test_a_file_of_something_else_is_told_in_one_problem():
    with pytest.raises(CatalogError, match="does not look like a catalog") as caught:
        parse_catalog("services:\n  web: {image: nginx}\n")
    assert len(caught.value.problems) == 1


def test_at_least_one_model_must_be_routable():
    with pytest.raises(CatalogError, match="none can be routed to"):
        parse_catalog(SMALL.replace("status: active", "status: disabled"))
    with pytest.raises(CatalogError, match="none can be routed to"):
        parse_catalog(SMALL[: SMALL.index("models:")] + "models: []\n")


def test_policy_settings_left_out_take_their_stated_defaults():
    start, end = SMALL.index("  cost_basis"), SMALL.index("evidence:")
    policy = parse_catalog(SMALL[:start] + SMALL[end:]).policy
    assert policy.price_ratio == 3.0
    assert policy.health_floor == 0.10
    assert policy.cost_basis is CostBasis.LIST_PRICE


def test_a_benchmark_without_importance_needs_no_score():
    text = edited(("importance: 0.4", "importance: 0"), ("puzzles: 0.5, bugs: 0.4", "puzzles: 0.5"))
    assert parse_catalog(text).model("cheap").scores == {"puzzles": 0.5}


def test_a_model_set_by_hand_on_all_dimensions_needs_no_scores():
    text = edited(
        ("    scores: {puzzles: 0.5, bugs: 0.4}\n", ""),
        ("capabilities: derived", "capabilities: {reasoning: 0.3, debugging: 0.2}"),
    )
    assert parse_catalog(text).model("cheap").overrides == {"reasoning": 0.3, "debugging": 0.2}


def test_one_dimension_may_be_set_by_hand_and_another_stay_derived():
    text = edited(("capabilities: derived", "capabilities: {reasoning: derived, debugging: 0.2}"))
    assert parse_catalog(text).model("cheap").overrides == {"debugging": 0.2}


def test_a_retiring_and_a_retired_model_carry_their_date():
    text = edited(("status: active", "status: retiring\n    retire_on: 2026-03-01"))
    assert parse_catalog(text).model("cheap").retire_on == date(2026, 3, 1)


def test_ids_in_another_alphabet_are_welcome_until_they_look_latin():
    assert parse_catalog(edited(("id: cheap", "id: модель-5"))).models[0].id == "модель-5"
    with pytest.raises(CatalogError, match="looks the same"):
        parse_catalog(edited(("id: cheap", "id: cop"), ("id: strong", "id: сор")))


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path):
    path = tmp_path / "pool.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert load_catalog(path).digest == parse_catalog(SMALL).digest
    assert parse_catalog("\ufeff" + SMALL).digest == parse_catalog(SMALL).digest


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (SMALL.encode("utf-16"), "not UTF-8"),
        (SMALL.replace("small", "kl\u00e9").encode("latin-1"), "line 2: is not UTF-8 text"),
        (b"PK\x03\x04\x14\x00\xff", r"is a zip file \(unpack it in the workspace"),
        (b"#" * 5_000_001, "larger than 5 MB"),
        (b"", "is empty"),
    ],
)
def test_files_that_are_no_catalog_text(tmp_path: Path, data: bytes, message: str):
    path = tmp_path / "pool.yaml"
    path.write_bytes(data)
    with pytest.raises(CatalogError, match=message):
        load_catalog(path)


def test_paths_that_are_no_file(tmp_path: Path):
    with pytest.raises(CatalogError, match="does not exist"):
        load_catalog(tmp_path / "none.yaml")
    with pytest.raises(CatalogError, match="is not a file"):
        load_catalog(tmp_path)
    with pytest.raises(CatalogError, match="cannot be read|does not exist"):
        load_catalog(tmp_path / ("x" * 5000))
