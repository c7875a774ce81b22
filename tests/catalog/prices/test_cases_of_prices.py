"""Price files and lists rebuilt from public reports give the values that their README states."""

import json
import re
from datetime import date
from pathlib import Path

import pytest

from hydra_core.catalog import CatalogDocument, load_catalog, parse_catalog
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.prices.suggestions import apply_price, suggest_matches
from hydra_core.cli.main import main
from tests.catalog.small import edited
from tests.predictor.tiny_bundle import make_bundle

CASES = Path(__file__).parents[3].parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason="needs ../shared/cases")


def entry(provider, read, written, cached, window, **more):
    return {
        "litellm_provider": provider, "mode": "chat", "input_cost_per_token": read / 1e6,
        "output_cost_per_token": written / 1e6, "cache_read_input_token_cost": cached / 1e6,
        "max_input_tokens": window, "supports_vision": True, "supports_function_calling": True,
        **more,
    }  # fmt: skip


LIST = {
    "gpt-5.4": entry("openai", 2.5, 15, 0.25, 1_050_000),
    "gpt-4o-mini": entry("openai", 0.15, 0.6, 0.075, 128_000, supports_vision=False),
    "gemini-2.5-pro": entry("vertex_ai", 1.25, 10, 0.125, 1_048_576, deprecation_date="2030-06-17"),
    "claude-sonnet-4-5": entry("anthropic", 3, 15, 0.3, 200_000, deprecation_date="2026-01-01"),
}


@pytest.fixture
def at(tmp_path, capsys):
    """A case imported as a set, and `init` on it."""
    make_bundle(tmp_path / "tiny")
    (tmp_path / "list.json").write_text(json.dumps(LIST))

    class At:
        out = tmp_path / "made.yaml"

        def imported(self, case):
            code = main(["import", "table", str(CASES / case), "--out", str(tmp_path / "set")])
            assert code == 0, capsys.readouterr().err

        def init(self, prices, *more):
            files = ["--prices", str(prices), "--bundle", str(tmp_path / "tiny")]
            code = main(["init", str(tmp_path / "set"), *files, "--out", str(self.out), *more])
            return (code, *capsys.readouterr())

        prices = tmp_path / "list.json"

    return At()


def test_a_catalog_takes_what_the_price_list_states(at):
    at.imported("prices/modern.csv")
    code, out, _ = at.init(at.prices)
    assert code == 0
    catalog = load_catalog(at.out)
    facts = {m.id: (m.context_window, m.vision, m.tools, m.provider) for m in catalog.models}
    assert facts == {
        "gpt-5.4": (1_050_000, True, True, "openai"),
        "gpt-4o-mini": (128_000, False, True, "openai"),
        "gemini-2.5-pro": (1_048_576, True, True, "vertex_ai"),
        "claude-sonnet-4-5": (200_000, True, True, "anthropic"),
    }
    assert catalog.model("gemini-2.5-pro").retire_on == date(2030, 6, 17)
    assert "warning: claude-sonnet-4-5 was retired on 2026-01-01, by LiteLLM" in out
    assert "assumed" not in at.out.read_text()


def test_a_near_entry_is_proposed_and_taken_once_it_is_confirmed(at):
    at.imported("prices/aliased.csv")
    code, _, err = at.init(at.prices)
    assert code == 2
    options = re.findall(r"--list-entry (\S+?)\)", err)
    assert options == [
        "anthropic/claude-sonnet-4.5=claude-sonnet-4-5",
        "gemini/gemini-2.5-pro=gemini-2.5-pro",
        "gpt-4o-mini-2024-07-18=gpt-4o-mini",
        "openai/gpt-5.4=gpt-5.4",
    ]
    more = [word for option in options for word in ("--list-entry", option)]
    assert at.init(at.prices, *more)[0] == 0
    assert load_catalog(at.out).model("openai/gpt-5.4").input_usd_per_mtok == 2.5


def test_a_price_per_thousand_is_refused_without_confirmation(at):
    at.imported("prices/modern.csv")
    code, _, err = at.init(CASES / "prices" / "mixedunits.yaml")
    assert code == 2
    assert "gemini-2.5-pro" in err
    assert "a factor of 1,700" in err
    assert "gives $0.000006 a query" in err
    assert "$0.0101 was recorded" in err
    assert "claude" not in err
    confirmed = at.init(CASES / "prices" / "mixedunits.yaml", "--confirm-price", "gemini-2.5-pro")
    assert confirmed[0] == 0
    assert "a factor of 1,700" in confirmed[1]


def test_costs_of_cached_input_that_the_table_lacks_are_named(at, tmp_path):
    at.imported("spend_logs/cached_missing.csv")
    prices = tmp_path / "p.yaml"
    prices.write_text(
        "models:\n  claude-sonnet-4-6: {input: 3, output: 15, cached: 0.3}\n"
        "  gpt-5.4-mini: {input: 0.4, output: 3, cached: 0.02}\n"
    )
    code, _, err = at.init(prices)
    assert code == 2
    assert "$0.155 a query, $0.0249 was recorded (a factor of 6.2)" in err
    assert "cached" in err


def test_a_list_without_a_cached_price_takes_the_old_one_away_and_says_so():
    text = (CASES / "prices" / "applied_list.json").read_text()
    listed = read_prices(text, "applied_list.json", as_of=date(2026, 6, 1))
    prices = {q.id: (float(q.input_usd_per_mtok), float(q.output_usd_per_mtok))
              for q in listed.quotes}  # fmt: skip
    assert prices == {
        "claude-sonnet-4-5": (0.2, 1.0), "gemini-2.5-pro": (1.0, 2.0), "gpt-4o-mini": (0.15, 0.6)
    }  # fmt: skip
    assert list(listed.dropped.values()) == [["gpt-5.4"]]
    assert "no usable price" in str(listed.quotes[2].tiers[0])
    before = edited(
        ("id: cheap", "id: claude-sonnet-4-5"),
        (
            "input_usd_per_mtok: 0.31",
            "cached_input_usd_per_mtok: 0.3\n    input_usd_per_mtok: 0.31",
        ),
    )
    (match,) = suggest_matches(parse_catalog(before), listed.quotes)
    assert "cached input price 0.3 -> (none) USD/Mtok" in match.changes
    document = CatalogDocument.parse(before)
    apply_price(document, match)
    model = parse_catalog(document.text()).model("claude-sonnet-4-5")
    assert (model.input_usd_per_mtok, model.cached_input_usd_per_mtok) == (0.2, None)
