"""Differences are told in an operator's words, and only differences in meaning."""

import pytest

from hydra_core.catalog import ChangeKind, parse_catalog, semantic_diff
from tests.catalog.small import SMALL, edited


def words(new: str, old: str = SMALL) -> list[str]:
    return [str(change) for change in semantic_diff(parse_catalog(old), parse_catalog(new))]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("k: 0.31", "k: 0.80", "cheap input price 0.31 -> 0.80 USD/Mtok"),
        ("k: 4.50", "k: 5", "cheap output price 4.50 -> 5.00 USD/Mtok"),
        ("128000", "256000", "cheap context window 128,000 -> 256,000 tokens"),
        ("vision: false", "vision: true", "cheap vision no -> yes"),
        ("status: active", "status: disabled", "cheap status active -> disabled"),
        ("bugs: 0.4}", "bugs: 0.425}", "cheap score on bugs 0.40 -> 0.425"),
        ("tau: 0.24", "tau: 0.3", "policy tau 0.24 -> 0.30"),
        ("debugging: 1}", "debugging: 2}", "weight of debugging 1.00 -> 2.00"),
        ("[0.1, 0.5]", "[0.1, 0.6]", "band of debugging [0.10, 0.50] -> [0.10, 0.60]"),
        ("importance: 0.4", "importance: 0.5", "benchmark bugs importance 0.40 -> 0.50"),
        ("{debugging: 0.8}", "{debugging: 0.7}", "benchmark bugs weight on debugging 0.80 -> 0.70"),
        ("name: small", "name: smaller", "name small -> smaller"),
        (
            "capabilities: derived",
            "capabilities: {debugging: 0.2}",
            "cheap capability by hand: debugging (none) -> 0.20",
        ),
    ],
)
def test_one_edit_is_one_sentence(old, new, text):
    old = old.replace("k: ", "usd_per_mtok: ")
    assert words(edited((old, new.replace("k: ", "usd_per_mtok: ")))) == [text]


def test_comments_spelling_and_key_order_are_no_difference():
    assert words(edited(("  # from the price page", ""), ("4.50", "4.5"), ("0.31", "0.310"))) == []


def test_added_removed_and_reordered_models():
    at = SMALL.index("  - id: strong")
    without = SMALL[:at]
    assert words(without) == ["model strong removed"]
    change = semantic_diff(parse_catalog(without), parse_catalog(SMALL))[0]
    assert (change.kind, change.path) == (ChangeKind.ADDED, ("models", "strong"))
    start = SMALL.index("  - id: cheap")
    swapped = SMALL[:start] + SMALL[at:] + SMALL[start:at]
    assert words(swapped) == ["model order cheap, strong -> strong, cheap"]


def test_a_change_holds_both_values_as_they_are_shown():
    new = edited(("[0.1, 0.5]", "[0.1, 0.6]"), ("usd_per_mtok: 0.31", "usd_per_mtok: 0.8"))
    changes = semantic_diff(parse_catalog(SMALL), parse_catalog(new))
    assert [(one.subject, one.before, one.after) for one in changes] == [
        ("band of debugging", "[0.10, 0.50]", "[0.10, 0.60]"),
        ("cheap input price", "0.31", "0.80 USD/Mtok"),
    ]


def test_the_path_leads_to_the_value():
    new = edited(("puzzles: 0.5", "puzzles: 0.55"))
    change = semantic_diff(parse_catalog(SMALL), parse_catalog(new))[0]
    assert change.path == ("models", "cheap", "scores", "puzzles")
    assert change.kind is ChangeKind.CHANGED


def test_defences_are_told():
    caps = "\npolicy:\n  defences: {score_caps: {reasoning: 0.3}, budget_usd: 0.5}\n"
    assert words(SMALL.replace("\npolicy:\n", caps, 1)) == [
        "score cap of reasoning (none) -> 0.30",
        "policy budget (none) -> 0.50 USD per conversation",
    ]


def test_the_unit_of_a_value_that_goes_stands_at_what_it_was():
    with_budget = SMALL.replace("\npolicy:\n", "\npolicy:\n  defences: {budget_usd: 0.5}\n", 1)
    changes = semantic_diff(parse_catalog(with_budget), parse_catalog(SMALL))
    assert [(one.before, one.after) for one in changes] == [("0.50 USD per conversation", "(none)")]
