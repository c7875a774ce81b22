"""Edits change the characters of the edited value and no others."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import CatalogError
from hydra_core.catalog import CatalogDocument, parse_catalog
from tests.catalog.small import SMALL, edited

SHIPPED = {
    path.stem: path.read_text("utf-8")
    for path in sorted((Path(__file__).parents[3] / "catalog").glob("*.yaml"))
}
PRICES = ("input_usd_per_mtok", "output_usd_per_mtok")
#: The same catalog as people write it: odd spacing, quotes, folded text, comments everywhere.
UNTIDY = """\
# head\r
schema: "hydra.catalog/v1"   # which\r
name:   'small'\r
notes: >\r
   folded\r
   text\r
\r
dimensions: [ reasoning ,debugging ]\r
predictor: {name: tiny,   fingerprint: abc123}\r
bands: {reasoning: [.2, 0.80], debugging: [1e-1, 0.5]}\r
policy:\r
    tau:  0.240   # keep\r
    weights: {reasoning: 1.00, debugging: 1}\r
evidence: {benchmarks: [{id: puzzles, importance: 1, weights: {reasoning: .9, debugging: 0.2}}]}\r
models:\r
# the cheap one\r
- {id: cheap, provider: acme, status: active, input_usd_per_mtok: 0.310, output_usd_per_mtok: 4.5,\r
   context_window: 128000, vision: false, tools: true, scores: {puzzles: .5},\r
   capabilities: derived, price_source: 'page: 1', price_date: "2026-01-01"}\r
\r
# the strong one\r
-   id: strong\r
    provider: acme\r
    status: active\r
    input_usd_per_mtok: 1.190 # list\r
    output_usd_per_mtok: 15.00\r
    context_window: 200000\r
    vision: true\r
    tools: true\r
    scores:\r
        puzzles: 0.90\r
    capabilities: derived\r
    price_source: page\r
    price_date: 2026-01-01\r
# foot"""


def changed_lines(old: str, new: str) -> list[tuple[str, str]]:
    """The lines that differ between two texts of equal length in lines."""
    before, after = old.split("\n"), new.split("\n")
    assert len(before) == len(after)
    return [(a, b) for a, b in zip(before, after, strict=True) if a != b]


def test_a_new_price_changes_its_characters_only():
    document = CatalogDocument.parse(SMALL)
    document.set("models", "cheap", "input_usd_per_mtok", 0.8)
    assert document.text() == edited(("input_usd_per_mtok: 0.31", "input_usd_per_mtok: 0.8"))


def test_a_decimal_keeps_the_digits_as_typed():
    document = CatalogDocument.parse(SMALL)
    document.set("models", 0, "output_usd_per_mtok", Decimal("4.00"))
    assert document.text() == edited(("output_usd_per_mtok: 4.50", "output_usd_per_mtok: 4.00"))


@pytest.mark.parametrize("text", [*SHIPPED.values(), UNTIDY, SMALL, "\ufeff" + SMALL])
def test_a_document_without_edits_is_the_text_itself(text):
    assert CatalogDocument.parse(text).text() == text
    parse_catalog(text)


prices = st.one_of(
    st.floats(0.001, 1e4, allow_nan=False),
    st.integers(1, 10_000),
    st.decimals("0.001", "9999", allow_nan=False, places=4),
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([*SHIPPED.values(), UNTIDY]),
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from(PRICES), prices), min_size=1, max_size=3),
)
def test_price_edits_leave_every_other_byte_alone(text, edits):
    document = CatalogDocument.parse(text)
    count = len(parse_catalog(text).models)
    wanted = {}
    for index, key, price in edits:
        document.set("models", index % count, key, price)
        wanted[index % count, key] = float(price)
    catalog = parse_catalog(document.text())
    for (index, key), price in wanted.items():
        assert getattr(catalog.models[index], key) == price
    assert len(changed_lines(text, document.text())) <= len(wanted)
    for index, key in wanted:  # putting the old spelling back gives the old text
        old = CatalogDocument.parse(text)
        start = old._find(("models", index, key)).start
        end = old._find(("models", index, key)).end
        document.set("models", index, key, Decimal(text[start:end]))
    assert document.text() == text


def test_every_scalar_of_the_shipped_catalogs_can_be_rewritten_in_place():
    for text in (SHIPPED["paper_five"], UNTIDY):
        document = CatalogDocument.parse(text)
        before = document.data()
        document.set("policy", "tau", 0.5)
        document.set("models", 1, "status", "retiring")
        document.set("models", 1, "retire_on", date(2026, 3, 1))
        document.set("models", 1, "vision", False)
        document.set("bands", "debugging", [0.1, 0.625])
        document.set("models", 1, "capabilities", {"debugging": 0.5})
        document.set("models", 1, "price_source", "page: 'new' # not a comment")
        catalog = parse_catalog(document.text())
        assert catalog.models[1].retire_on == date(2026, 3, 1)
        assert catalog.models[1].price_source == "page: 'new' # not a comment"
        assert catalog.models[1].overrides == {"debugging": 0.5}
        assert document.get("models", 0) == before["models"][0]
        kept = [line for line in text.splitlines() if line.lstrip().startswith("#")]
        assert kept == [line for line in document.text().splitlines() if line.lstrip()[:1] == "#"]


@pytest.mark.parametrize("text", [SHIPPED["paper_five"], SMALL, UNTIDY])
def test_a_model_can_be_added_and_taken_out_again(text):
    document = CatalogDocument.parse(text)
    model = {**document.get("models", 1), "id": "new-model", "notes": "line 1\nline 2: yes"}
    document.append("models", model)
    assert document.text() != text
    catalog = parse_catalog(document.text())
    assert catalog.models[-1].id == "new-model"
    assert catalog.models[-1].notes == "line 1\nline 2: yes"
    document.remove("models", "new-model")
    assert document.text().rstrip("\r\n") == text.rstrip("\r\n")


def test_removing_a_model_takes_its_comment_and_leaves_the_others():
    document = CatalogDocument.parse(UNTIDY)
    document.remove("models", "strong")
    assert "the strong one" not in document.text()
    assert "the cheap one" in document.text()
    assert document.text().endswith("# foot")
    assert [model.id for model in parse_catalog(document.text()).models] == ["cheap"]


def test_removing_the_last_entry_leaves_an_empty_list():
    document = CatalogDocument.parse("a:\n  - x # one\nb: {c: 1}\n")
    document.remove("a", 0)
    document.remove("b", "c")
    assert document.data() == {"a": [], "b": {}}


def test_keys_come_and_go_in_block_and_flow_mappings():
    document = CatalogDocument.parse(SMALL)
    document.remove("policy", "sticky")
    document.remove("policy", "weights", "reasoning")
    document.set("policy", "weights", "reasoning", 2)
    assert "  weights: {debugging: 1, reasoning: 2}\n" in document.text()
    assert parse_catalog(document.text()).policy.weights == (2.0, 1.0)
    document.remove("models", 0, "id")
    assert document.get("models", 0)["provider"] == "acme"


def test_an_empty_value_is_filled_in():
    document = CatalogDocument.parse("a:\nb:   # later\nc: 1\n")
    document.set("a", 5)
    document.set("b", "x")
    assert document.text() == "a: 5\nb: x   # later\nc: 1\n"


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document.set("models", 7, "notes", "x"),
        lambda document: document.set("models", "nobody", "notes", "x"),
        lambda document: document.set("policy", "tau", float("nan")),
        lambda document: document.set("policy", "tau", 10**50),
        lambda document: document.set("x"),
        lambda document: document.remove("policy", "nothing"),
        lambda document: document.remove(),
        lambda document: document.append("policy", 1),
        lambda document: document.set("name", "sm\ud800ll"),
    ],
)
def test_an_edit_that_cannot_be_made_changes_nothing(edit):
    document = CatalogDocument.parse(SMALL)
    with pytest.raises(CatalogError):
        edit(document)
    assert document.text() == SMALL


def test_text_that_is_no_yaml_is_refused():
    with pytest.raises(CatalogError, match="alias"):
        CatalogDocument.parse("a: &x 1\nb: *x\n")


any_scalar = st.one_of(
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(-1e6, 1e6).map(lambda number: round(number, 6)),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.none(),
    st.sampled_from(
        ["yes", "on", "1", "0.5", "null", "~", "a: b", "# x", "- a", "", " x ", "2026-01-01"]
    ),
)
any_value = st.recursive(
    any_scalar,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=3
        )
    ),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(
    any_value,
    st.sampled_from([("models", 0, "notes"), ("policy", "x"), ("policy", "weights", "y")]),
)
def test_any_value_is_read_back_as_it_was_written(value, path):
    document = CatalogDocument.parse(SMALL)
    document.set(*path, value)
    assert document.get(*path) == value
    document.remove(*path)
    assert document.text() == SMALL


@pytest.mark.parametrize("indent", ["", "  "])
def test_a_list_below_its_key_is_replaced_however_far_it_is_indented(indent):
    text = f"bands:\n  a:\n  {indent}- 0.1\n  {indent}- 0.2  # high\n  b: 1\nlast: 2\n"
    document = CatalogDocument.parse(text)
    document.set("bands", "a", [1, 2])
    assert document.data() == {"bands": {"a": [1, 2], "b": 1}, "last": 2}
