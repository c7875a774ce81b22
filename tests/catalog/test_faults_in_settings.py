"""One case per check outside the models: place, value found, way out."""

import pytest

from tests.catalog.small import assert_told

#: old text, new text, place, part of the message, part of the remedy
CASES = {
    "schema version": (
        "catalog/v1",
        "catalog/v2",
        "schema (line 1)",
        "hydra.catalog/v2",
        "no other",
    ),
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
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_fault_is_named_with_place_value_and_remedy(case):
    assert_told(*case)
