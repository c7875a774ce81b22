"""One colour a model, whatever the order it is drawn in."""

from dataclasses import replace

from hydra_core.console.figures.theme import CHAR_PX, LIGHT, apart, fitting, model_colors, room

KNOWN = replace(LIGHT, order=("a", "b", "c"))


def test_a_model_keeps_its_colour_when_prices_change_the_order():
    before, after = model_colors(("a", "b", "c"), KNOWN), model_colors(("c", "a", "b"), KNOWN)
    assert before == after == dict(zip("abc", LIGHT.models, strict=False))
    assert list(after) == ["c", "a", "b"]
    assert model_colors(("c",), KNOWN)["c"] == before["c"]


def test_unknown_models_come_after_and_none_shares_a_colour():
    many = replace(LIGHT, order=tuple(f"m{i:02}" for i in range(20)))
    drawn = model_colors(("m00", "m12", "new", "m01"), many)  # m12 would start again at m00's
    assert len(set(drawn.values())) == 4
    assert drawn["m00"] == LIGHT.models[0]
    assert drawn["m01"] == LIGHT.models[1]


def test_a_name_too_long_for_its_row_shows_how_it_begins_and_ends():
    long = "acme/a-very-long-model-name-for-code-2026-11-20-preview"
    wide = room([long, "short"], 190)
    assert wide == 190
    assert fitting([long, "a<b"], wide) == ["acme/a-very-l…11-20-preview", "a&lt;b"]
    assert len(fitting([long], wide)[0]) * 7 <= wide
    assert room(["short"], 190) == 35


def test_long_names_of_a_gateway_are_told_apart_and_short_ones_stay():
    ids = [
        "acme-gateway/anthropic/claude-sonnet-4.5-20260915-thinking-high",
        "acme-gateway/anthropic/claude-opus-4.6-20260801-thinking-high",
        "acme-gateway/openai/gpt-5.4-2026-08-14",
        "acme-gateway/openai/gpt-5.5-2026-08-14",
        "gpt-4o",
    ]
    assert fitting([*ids, "gpt-4o"], 21 * CHAR_PX) == [
        "…sonnet-4.…nking-high", "…opus-4.6-…nking-high",
        "…gpt-5.4-2026-08-14", "…gpt-5.5-2026-08-14", "gpt-4o", "gpt-4o",
    ]  # fmt: skip
    inside = ["a" * 50 + middle + "b" * 50 for middle in "12"]
    assert list(apart(inside, 7).values()) == ["…1b…bbb", "…2b…bbb"]
