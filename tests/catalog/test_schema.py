"""One case per check: the exact place, what was found, and the way out."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from hydra_core.catalog import load_catalog, parse_catalog
from hydra_core.errors import CatalogError
from hydra_core.types import CostBasis, ModelStatus, StickyMode
from tests.catalog.small import SMALL, edited

CHEAP = "models[0] 'cheap'"
#: old text, new text, place, part of the message, part of the remedy
CASES = {
    "schema version": ("catalog/v1", "catalog/v2", "schema (line 1)", "hydra.catalog/v2", "only"),
    "schema missing": ("schema: hydra.catalog/v1\n", "", "schema (line 1)", "missing", "begin"),
    "unknown key": ("name: small", "nmae: small", "nmae (line 2)", "not a known key", "'name'?"),
    "name missing": ("name: small\n", "", "name (line 1)", "missing", "short name"),
    "name is no text": ("name: small", "name: 5", "name (line 2)", "text, got 5", "quotes"),
    "dimensions no list": (
        "dimensions: [reasoning, debugging]",
        "dimensions: reasoning",
        "dimensions (line 3)",
        "must be a list, got the text 'reasoning'",
        "list",
    ),
    "dimension twice": (
        "[reasoning, debugging]",
        "[reasoning, debugging, debugging]",
        "dimensions (line 3)",
        "'debugging' is given twice",
        "keep one",
    ),
    "fingerprint missing": (
        "  fingerprint: abc123\n",
        "",
        "predictor.fingerprint (line 5)",
        "missing",
        "fingerprint",
    ),
    "fingerprint a number": (
        "abc123",
        "123",
        "predictor.fingerprint (line 6)",
        "must be text, got 123",
        "quotes",
    ),
    "band missing": (
        "  debugging: [0.1, 0.5]\n",
        "",
        "bands.debugging (line 8)",
        "missing",
        "[lo, hi]",
    ),
    "band upside down": (
        "[0.1, 0.5]",
        "[0.5, 0.1]",
        "bands.debugging (line 9)",
        "lo must be < hi, got [0.5, 0.1]",
        "[lo, hi]",
    ),
    "band empty": ("[0.1, 0.5]", "[0.5, 0.5]", "bands.debugging (line 9)", "lo must be <", "lo"),
    "band outside": (
        "[0.1, 0.5]",
        "[0.1, 1.5]",
        "bands.debugging (line 9)",
        "in [0, 1], got 1.5",
        "lo",
    ),
    "band of three": ("[0.1, 0.5]", "[0, 0.1, 0.5]", "bands.debugging (line 9)", "got 3", "lo"),
    "band of another": (
        "  debugging: [0.1, 0.5]",
        "  debuging: [0.1, 0.5]",
        "bands.debuging (line 9)",
        "not a dimension of this catalog",
        "did you mean 'debugging'?",
    ),
    "tau negative": ("tau: 0.24", "tau: -1", "policy.tau (line 11)", ">= 0, got -1", "shortfall"),
    "tau quoted": (
        "tau: 0.24",
        'tau: "0.24"',
        "policy.tau (line 11)",
        "got the text '0.24'",
        "without quotes",
    ),
    "tau a bool": ("tau: 0.24", "tau: true", "policy.tau (line 11)", "a number, got true", "such"),
    "tau NaN": ("tau: 0.24", "tau: .nan", "policy.tau (line 11)", "finite number, got .nan", ""),
    "tau inf": ("tau: 0.24", "tau: .inf", "policy.tau (line 11)", "finite number, got .inf", ""),
    "tau overflow": ("tau: 0.24", "tau: 1e999", "policy.tau (line 11)", "finite", ""),
    "weight zero": (
        "weights: {reasoning: 1, debugging: 1}",
        "weights: {reasoning: 0, debugging: 1}",
        "policy.weights.reasoning (line 12)",
        "must be > 0, got 0",
        "weight > 0",
    ),
    "weight missing": (
        "weights: {reasoning: 1, debugging: 1}",
        "weights: {reasoning: 1}",
        "policy.weights.debugging (line 12)",
        "missing",
        "weight > 0",
    ),
    "cost basis": (
        "cost_basis: list_price",
        "cost_basis: list-price",
        "policy.cost_basis (line 13)",
        "list_price, realised; got the text 'list-price'",
        "did you mean 'list_price'?",
    ),
    "price ratio": ("price_ratio: 3", "price_ratio: 0", "policy.price_ratio (line 14)", "> 0", ""),
    "sticky mode": (
        "per_session",
        "per_sesion",
        "policy.sticky.mode (line 15)",
        "per_request",
        "'per_session'?",
    ),
    "sticky threshold": (
        "threshold: 0.0",
        "threshold: 2",
        "policy.sticky.threshold (line 15)",
        "[0, 1]",
        "",
    ),
    "sticky ttl": ("ttl_s: 3600", "ttl_s: 0", "policy.sticky.ttl_s (line 15)", "> 0", "seconds"),
    "health floor": ("floor: 0.1", "floor: 1.1", "policy.health_floor (line 16)", "[0, 1]", ""),
    "benchmark twice": (
        "id: bugs",
        "id: puzzles",
        "evidence.benchmarks[1] 'puzzles': id (line 22)",
        "given twice, first on line 19",
        "rename",
    ),
    "importance negative": (
        "importance: 0.4",
        "importance: -0.4",
        "evidence.benchmarks[1] 'bugs': importance (line 23)",
        ">= 0, got -0.4",
        "alpha_b",
    ),
    "omega above 1": (
        "{debugging: 0.8}",
        "{debugging: 80}",
        "evidence.benchmarks[1] 'bugs': weights.debugging (line 24)",
        "in [0, 1], got 80",
        "0 to 1",
    ),
    "benchmark for nothing": (
        "{debugging: 0.8}",
        "{debugging: 0}",
        "evidence.benchmarks[1] 'bugs': weights (line 24)",
        "exercises no dimension",
        "> 0",
    ),
    "id missing": (
        "  - id: cheap\n    provider",
        "  - provider",
        "models[0].id (line 26)",
        "missing",
        "unique",
    ),
    "id twice": (
        "id: strong",
        "id: cheap",
        "models[1] 'cheap': id (line 38)",
        "given twice",
        "rename",
    ),
    "id by case": (
        "id: strong",
        "id: Cheap",
        "models[1] 'Cheap': id (line 38)",
        "'Cheap' looks the same as 'cheap' on line 26",
        "rename",
    ),
    "id mixed alphabets": (
        "id: cheap",
        "id: che\u0430p",
        "models[0] 'che\u0430p': id (line 26)",
        "(cyrillic)",
        "retype",
    ),
    "id full width": (
        "id: cheap",
        "id: \uff43heap",
        "models[0] '\uff43heap': id (line 26)",
        "NFKC",
        "'cheap'",
    ),
    "id invisible": ("id: cheap", 'id: "che\\u200bap"', "id (line 26)", "zero width space", "use"),
    "id with a blank": (
        "id: cheap",
        "id: che ap",
        "models[0] 'che ap': id (line 26)",
        "space",
        "use",
    ),
    "id with HTML": ("id: cheap", "id: <b>x", "models[0] '<b>x': id (line 26)", "less-than", "use"),
    "provider missing": (
        "    provider: acme\n",
        "",
        f"{CHEAP}: provider (line 26)",
        "missing",
        "openai",
    ),
    "status unknown": (
        "status: active",
        "status: actve",
        f"{CHEAP}: status (line 28)",
        "one of",
        "'active'?",
    ),
    "price missing": (
        "    output_usd_per_mtok: 4.50\n",
        "",
        f"{CHEAP}: output_usd_per_mtok (line 26)",
        "is missing",
        "USD per million tokens",
    ),
    "price empty": (
        "output_usd_per_mtok: 4.50",
        "output_usd_per_mtok:",
        f"{CHEAP}: output_usd_per_mtok (line 30)",
        "is empty",
        "USD per million tokens",
    ),
    "price zero": (
        "input_usd_per_mtok: 0.31",
        "input_usd_per_mtok: 0",
        f"{CHEAP}: input_usd_per_mtok (line 29)",
        "must be > 0, got 0",
        "self-hosted",
    ),
    "price negative": (
        "input_usd_per_mtok: 0.31",
        "input_usd_per_mtok: -5",
        f"{CHEAP}: input_usd_per_mtok (line 29)",
        "must be > 0, got -5",
        "USD per million tokens",
    ),
    "price per token": (
        "input_usd_per_mtok: 0.31",
        "input_usd_per_mtok: 0.00000031",
        f"{CHEAP}: input_usd_per_mtok (line 29)",
        "3.1e-07 looks like a price per token",
        "0.31",
    ),
    "price with sign": (
        "input_usd_per_mtok: 0.31",
        "input_usd_per_mtok: $0.31",
        f"{CHEAP}: input_usd_per_mtok (line 29)",
        "a number, got the text '$0.31'",
        "USD per",
    ),
    "cached price": (
        "0.31  #",
        "0.31\n    cached_input_usd_per_mtok: 0  #",
        f"{CHEAP}: cached_input_usd_per_mtok (line 30)",
        "must be > 0, got 0",
        "USD per",
    ),
    "context window": (
        "128000",
        "0",
        f"{CHEAP}: context_window (line 31)",
        "got 0",
        "context window in tokens",
    ),
    "context fraction": (
        "128000",
        "128.5",
        f"{CHEAP}: context_window (line 31)",
        "whole number, got 128.5",
        "tokens",
    ),
    "context bool": ("128000", "true", f"{CHEAP}: context_window (line 31)", "got true", "tokens"),
    "vision a word": (
        "vision: false",
        "vision: no",
        f"{CHEAP}: vision (line 32)",
        "must be true or false, got the text 'no'",
        "images",
    ),
    "tools a number": ("tools: true", "tools: 1", f"{CHEAP}: tools (line 33)", "got 1", "tool"),
    "score unknown": (
        "bugs: 0.4}",
        "bugs: 0.4, puzzels: 0.1}",
        f"{CHEAP}: scores.puzzels (line 34)",
        "not a benchmark of this catalog",
        "did you mean 'puzzles'?",
    ),
    "score in percent": (
        "bugs: 0.4}",
        "bugs: 40}",
        f"{CHEAP}: scores.bugs (line 34)",
        "in [0, 1], got 40",
        "80.4 %",
    ),
    "score missing": (
        "puzzles: 0.5, bugs: 0.4",
        "puzzles: 0.5",
        f"{CHEAP}: scores (line 34)",
        "misses 'bugs': a missing rate is never filled in",
        "importance to 0",
    ),
    "scores missing": (
        "    scores: {puzzles: 0.5, bugs: 0.4}\n",
        "",
        f"{CHEAP}: scores (line 26)",
        "misses 'puzzles', 'bugs'",
        "measured rate",
    ),
    "capabilities missing": (
        "    capabilities: derived\n",
        "",
        f"{CHEAP}: capabilities (line 26)",
        "missing",
        "derived",
    ),
    "capabilities misspelt": (
        "capabilities: derived",
        "capabilities: drived",
        f"{CHEAP}: capabilities (line 35)",
        "got the text 'drived'",
        "'derived'",
    ),
    "capability above 1": (
        "capabilities: derived",
        "capabilities: {debugging: 1.2}",
        f"{CHEAP}: capabilities.debugging (line 35)",
        "in [0, 1], got 1.2",
        "derived",
    ),
    "capability unknown": (
        "capabilities: derived",
        "capabilities: {speed: 0.2}",
        f"{CHEAP}: capabilities.speed (line 35)",
        "not a dimension",
        "reasoning, debugging",
    ),
    "no evidence": (
        "{reasoning: 0.9, debugging: 0.2}",
        "{debugging: 0.2}",
        f"{CHEAP}: capabilities (line 35)",
        "'reasoning': no benchmark",
        "override",
    ),
    "price source": (
        "price_source: price page",
        "price_source: ''",
        "price_source",
        "empty",
        "read",
    ),
    "price date": (
        "price_date: 2026-01-01",
        "price_date: 01.02.2026",
        f"{CHEAP}: price_date (line 37)",
        "must be a date, got the text '01.02.2026'",
        "YYYY-MM-DD",
    ),
    "no such day": (
        "price_date: 2026-01-01",
        "price_date: 2026-02-30",
        f"{CHEAP}: price_date (line 37)",
        "must be a date",
        "YYYY-MM-DD",
    ),
    "retiring without date": (
        "status: active",
        "status: retiring",
        f"{CHEAP}: retire_on (line 26)",
        "missing",
        "leaves",
    ),
    "active with a date": (
        "status: active",
        "status: active\n    retire_on: 2026-02-01",
        f"{CHEAP}: retire_on (line 29)",
        "the status is active",
        "status: retiring",
    ),
    "unknown model key": (
        "    vision: false",
        "    visoin: false",
        f"{CHEAP}: visoin (line 32)",
        "not a known key",
        "did you mean 'vision'?",
    ),
    "key twice": (
        "tau: 0.24",
        "tau: 0.24\n  tau: 0.3",
        "line 12",
        "'tau' is given twice, first on line 11",
        "keep one",
    ),
    "model no mapping": (
        "models:\n",
        "models:\n  - gpt-5\n",
        "models[0] (line 26)",
        "must be a mapping",
        "- id",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_fault_is_named_with_place_value_and_remedy(case):
    old, new, place, message, remedy = case
    with pytest.raises(CatalogError) as caught:
        parse_catalog(edited((old, new)), "pool.yaml")
    hits = [p for p in caught.value.problems if place in p.place and message in p.message]
    assert hits, str(caught.value)
    assert remedy in hits[0].remedy
    assert str(caught.value).startswith("pool.yaml: ")


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
        "(give the price in USD per million tokens; a self-hosted model may state its cost)"
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
