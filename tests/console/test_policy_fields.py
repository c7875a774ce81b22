"""Each field of the policy is written into the text and tried by itself."""

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS
from hydra_core.base.types import CostBasis, Defences, StickyMode
from hydra_core.catalog.schema import parse_catalog
from hydra_core.console import cache, replays
from hydra_core.console.catalog.policy import (
    alone,
    conversation_note,
    defences_text,
    value_of,
    with_field,
)
from hydra_core.replay.compare import what_if
from tests.evalsets.sets import saved

TEXT = (CATALOGS / "paper_five.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "written", "read"),
    [
        ("tau", 0.31, 0.31),
        ("cost_basis", "realised", CostBasis.REALISED),
        ("price_ratio", 5.0, 5.0),
        ("sticky.mode", "adaptive", StickyMode.ADAPTIVE),
        ("sticky.ttl_s", 60.0, 60.0),
        ("health_floor", 0.2, 0.2),
        ("defences.budget_usd", 0.5, 0.5),
        ("defences.score_caps.tool_use", 0.3, 0.3),
        ("defences.score_caps.reasoning", None, None),
    ],
)
def test_a_field_is_written_and_read_back(name, written, read):
    assert value_of(parse_catalog(with_field(TEXT, name, written)).policy, name) == read


def test_a_policy_without_a_section_on_stickiness_gets_one():
    lines = TEXT.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  sticky:"))
    end = next(i for i in range(start + 1, len(lines)) if not lines[i].startswith("    "))
    bare = "\n".join(lines[:start] + lines[end:])
    changed = parse_catalog(with_field(bare, "sticky.threshold", 0.3))
    assert changed.policy.sticky.threshold == 0.3


def test_one_field_is_tried_without_the_others():
    before = parse_catalog(TEXT)
    after = parse_catalog(with_field(with_field(TEXT, "tau", 0.5), "price_ratio", 9.0))
    tried = alone(before, after, "tau")
    assert (tried.policy.tau, tried.policy.price_ratio) == (0.5, before.policy.price_ratio)


def test_defences_are_written_beside_one_another_and_taken_out_again():
    text = TEXT
    for name, value in (("score_caps.reasoning", 0.3), ("score_caps.tool_use", 0.4),
                        ("budget_usd", 2.0), ("score_caps.reasoning", None)):  # fmt: skip
        text = with_field(text, f"defences.{name}", value)
    found = parse_catalog(text).policy
    assert found.defences == Defences({"tool_use": 0.4}, 2.0)
    assert defences_text(found) == "scores count up to tool use 0.4; $2 a conversation"
    for name in ("score_caps.tool_use", "budget_usd"):
        text = with_field(text, f"defences.{name}", None)
    assert parse_catalog(text).policy.defences == Defences()
    assert defences_text(parse_catalog(text).policy) == "none"


def test_one_cap_is_tried_without_the_others():
    before = parse_catalog(with_field(TEXT, "defences.score_caps.debugging", 0.1))
    both = with_field(TEXT, "defences.score_caps.reasoning", 0.3)
    after = parse_catalog(with_field(both, "defences.budget_usd", 2.0))
    tried = alone(before, after, "defences.score_caps.reasoning").policy.defences
    assert tried == Defences({"debugging": 0.1, "reasoning": 0.3})
    gone = alone(before, after, "defences.score_caps.debugging").policy.defences
    assert gone == Defences()
    assert alone(before, after, "defences.budget_usd").policy.defences.budget_usd == 2.0


def test_a_threshold_says_how_many_queries_ask_for_less(tmp_path):
    evalset = saved(tmp_path / "s")
    policy = parse_catalog(with_field(TEXT, "sticky.threshold", 0.5)).policy
    needs = np.array([[0.1, 0.2], [0.1, 0.9], [0.4, 0.4]])
    assert conversation_note("sticky.threshold", policy, evalset, needs).startswith("67 %")
    assert "continues a conversation" in conversation_note("sticky.mode", policy, evalset, needs)


def test_a_field_tried_alone_is_replayed_although_its_text_was_replayed_before(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path))
    entry = next(one for one in cache.evalsets() if one.key == "console_demo")
    before = parse_catalog(TEXT)
    after = parse_catalog(with_field(TEXT, "cost_basis", "realised"))
    published = replays.replayed(entry, before)
    tried, whole = (
        what_if(published, replays.replayed(entry, one))
        for one in (alone(before, after, "cost_basis"), after)
    )
    assert whole.comparison.flipped.size
    np.testing.assert_array_equal(tried.comparison.flipped, whole.comparison.flipped)


def test_a_setting_that_both_are_compared_at_stays_out_of_the_catalog(tmp_path, monkeypatch):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path))
    entry = next(one for one in cache.evalsets() if one.key == "console_demo")
    catalog = parse_catalog(TEXT.replace("tau: 0.24", "tau: 0.19"))
    own = catalog.policy
    at = replays.replayed(entry, catalog, own.tau + 0.2)
    assert at.catalog.policy.tau == own.tau + 0.2
    sweep = replays.ruled_sweep(entry, catalog, own.rule, own.weights)
    assert sweep.own_knob == own.tau
