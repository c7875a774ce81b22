import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import CatalogError
from hydra_core.catalog import CatalogDocument, parse_catalog, semantic_diff
from hydra_core.store import three_way
from tests.catalog.small import SMALL, edited

NEW_MODEL = """\
  - id: middle
    provider: acme
    status: active
    input_usd_per_mtok: 0.80
    output_usd_per_mtok: 8.00
    context_window: 128000
    vision: false
    tools: true
    scores: {puzzles: 0.7, bugs: 0.6}
    capabilities: derived
    price_source: price page
    price_date: 2026-02-01
"""


def without(text, model):
    document = CatalogDocument.parse(text)
    document.remove("models", model)
    return document.text()


def test_edits_of_different_values_merge_and_their_comments_stay():
    mine = edited(("0.31", "0.40"), ("tau: 0.24", "tau: 0.30"))
    theirs = edited(("1.19", "1.50  # since March"), ("name: small", "name: small\nnotes: theirs"))
    result = three_way(SMALL, mine, theirs)
    assert result.clean
    expected = edited(
        ("0.31", "0.40"),
        ("tau: 0.24", "tau: 0.30"),
        ("1.19", "1.50  # since March"),
        ("name: small", "name: small\nnotes: theirs"),
    )
    assert result.text == expected
    assert [str(change) for change in result.applied] == [
        "policy tau 0.24 -> 0.30",
        "cheap input price 0.31 -> 0.40 USD/Mtok",
    ]


def test_the_same_edit_on_both_sides_is_no_conflict():
    theirs = edited(("0.31", "0.4"))
    result = three_way(SMALL, edited(("0.31", "0.40")), theirs)
    assert result.clean
    assert result.text == theirs
    assert result.applied == ()


def test_different_edits_of_one_value_are_told_with_all_three():
    theirs = edited(("0.31", "0.50"))
    result = three_way(SMALL, edited(("0.31", "0.40"), ("1.19", "1.5")), theirs)
    assert not result.clean
    (conflict,) = result.conflicts
    assert str(conflict) == "models cheap input_usd_per_mtok: was 0.31; yours 0.4; theirs 0.5"
    assert result.text == edited(("0.31", "0.50"), ("1.19", "1.5"))


def test_a_conflict_is_decided_by_a_choice():
    texts = SMALL, edited(("0.31", "0.40")), edited(("0.31", "0.50"))
    path = three_way(*texts).conflicts[0].path
    mine = three_way(*texts, choices={path: "mine"})
    assert mine.clean
    assert mine.text == texts[1]
    theirs = three_way(*texts, choices={path: "theirs"})
    assert theirs.clean
    assert theirs.text == texts[2]


def test_models_added_on_both_sides_are_both_there():
    mine = SMALL + NEW_MODEL
    theirs = SMALL + NEW_MODEL.replace("id: middle", "id: other")
    result = three_way(SMALL, mine, theirs)
    assert result.clean
    assert [model.id for model in parse_catalog(result.text).models] == [
        "cheap",
        "strong",
        "other",
        "middle",
    ]
    assert "input_usd_per_mtok: 0.80" in result.text


def test_one_model_added_differently_on_both_sides_is_a_conflict():
    theirs = SMALL + NEW_MODEL.replace("0.80", "0.90")
    result = three_way(SMALL, SMALL + NEW_MODEL, theirs)
    (conflict,) = result.conflicts
    assert conflict.path == ("models", "middle", "input_usd_per_mtok")
    assert (conflict.base, conflict.mine, conflict.theirs) == ("(not there)", "0.8", "0.9")


def test_removing_a_model_merges_with_edits_elsewhere():
    base = SMALL + NEW_MODEL
    result = three_way(base, without(base, "middle"), base.replace("0.31", "0.40"))
    assert result.clean
    assert [str(change) for change in result.applied] == ["model middle removed"]
    assert result.text == edited(("0.31", "0.40"))


def test_removing_what_the_other_repriced_is_a_conflict_either_way():
    base = SMALL + NEW_MODEL
    gone, dearer = without(base, "middle"), base.replace("0.80", "0.90")
    for mine, theirs in ((gone, dearer), (dearer, gone)):
        result = three_way(base, mine, theirs)
        assert [conflict.path for conflict in result.conflicts] == [("models", "middle")]
        assert result.text == theirs
        assert three_way(base, mine, theirs, choices={("models", "middle"): "mine"}).clean


def test_two_valid_edits_that_do_not_fit_together_are_reported():
    document = CatalogDocument.parse(SMALL)
    document.remove("evidence", "benchmarks", "bugs")
    document.remove("models", "cheap", "scores", "bugs")
    document.remove("models", "strong", "scores", "bugs")
    result = three_way(SMALL, SMALL + NEW_MODEL, document.text())
    assert not result.conflicts
    assert not result.clean
    assert any("bugs" in str(problem) for problem in result.problems)


def reversed_models():
    head, models = SMALL.split("models:\n")
    cheap, strong = models.split("  - id: strong")
    return f"{head}models:\n  # the best\n  - id: strong{strong}{cheap}"


def test_a_new_order_of_models_is_merged_with_their_comments():
    theirs = edited(("1.19", "1.50"), ("  - id: strong", "  # good\n  - id: strong"))
    result = three_way(SMALL, reversed_models(), theirs)
    assert result.clean
    assert [model.id for model in parse_catalog(result.text).models] == ["strong", "cheap"]
    assert "  # good\n  - id: strong" in result.text
    assert "input_usd_per_mtok: 0.31  # from the price page" in result.text


def test_two_new_orders_are_a_conflict():
    base = SMALL + NEW_MODEL
    document = CatalogDocument.parse(base)
    document.remove("models", "cheap")
    cheap = SMALL.split("models:\n")[1].split("  - id: strong")[0]
    mine = document.text() + cheap
    theirs = reversed_models() + NEW_MODEL
    result = three_way(base, mine, theirs)
    assert [conflict.path for conflict in result.conflicts] == [("models", "(order)")]
    chosen = three_way(base, mine, theirs, choices={("models", "(order)"): "mine"})
    assert [model.id for model in parse_catalog(chosen.text).models] == [
        "strong",
        "middle",
        "cheap",
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_only_valid_catalogs_are_merged(place):
    texts = [SMALL, SMALL, SMALL]
    texts[place] = "name: x"
    with pytest.raises(CatalogError):
        three_way(*texts)


PRICES = st.integers(1, 5).map(lambda cents: f"0.{cents}0")
EDITS = st.fixed_dictionaries(
    {},
    optional={
        ("models", "cheap", "input_usd_per_mtok"): PRICES,
        ("models", "strong", "input_usd_per_mtok"): PRICES,
        ("policy", "tau"): PRICES,
        ("policy", "weights", "reasoning"): PRICES,
        ("evidence", "benchmarks", "bugs", "importance"): PRICES,
    },
)


def with_edits(edits):
    document = CatalogDocument.parse(SMALL)
    for path, value in edits.items():
        document.set(*path, float(value))
    return document.text()


@settings(max_examples=25, deadline=None)
@given(EDITS, EDITS)
def test_a_merge_has_every_edit_of_both_and_nothing_else(mine, theirs):
    result = three_way(SMALL, with_edits(mine), with_edits(theirs))
    both = {path for path in mine if path in theirs and mine[path] != theirs[path]}
    found = CatalogDocument.parse(SMALL)
    changed = {path for path, value in mine.items() if found.get(*path) != float(value)}
    changed_too = {path for path, value in theirs.items() if found.get(*path) != float(value)}
    assert {conflict.path for conflict in result.conflicts} == both & changed & changed_too
    for path, value in mine.items():
        if path in changed and path not in both & changed_too:
            found.set(*path, float(value))
    for path, value in theirs.items():
        if path in changed_too:
            found.set(*path, float(value))
    assert not semantic_diff(parse_catalog(found.text()), parse_catalog(result.text))
