"""A catalog remembers which queries its policy was chosen on."""

from dataclasses import replace

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.types import Chosen, Selection
from hydra_core.catalog import parse_catalog
from hydra_core.catalog.chosen_and_promised import chosen_between, record_choice
from hydra_core.catalog.editing.document import CatalogDocument
from tests.catalog.small import SMALL

MARKS = ("0123456789ab", "0123456789ac")
HERE = Chosen("a" * 64, "mine", Selection.CROSS_FITTED, knob_alone=True, sample=MARKS)
THERE = Chosen("b" * 64, "theirs", Selection.LOOKED, knob_alone=False)


def edited(*path_and_value):
    document = CatalogDocument.parse(SMALL)
    document.set(*path_and_value)
    return parse_catalog(document.text())


def test_every_set_is_recorded_once_and_none_is_taken_away():
    text = record_choice(record_choice(SMALL, HERE), THERE)
    assert parse_catalog(text).policy.chosen_on == (HERE, THERE)
    assert record_choice(text, HERE) == text


def test_looking_and_choosing_more_than_the_knob_are_not_forgotten():
    looked = replace(HERE, how=Selection.LOOKED, knob_alone=False)
    for order in ((HERE, looked), (looked, HERE)):
        text = SMALL
        for one in order:
            text = record_choice(text, one)
        assert parse_catalog(text).policy.chosen_on == (looked,)


def test_a_price_is_a_fact_and_tau_a_choice():
    before = parse_catalog(SMALL)
    model = before.models[0].id
    assert chosen_between(before, edited("models", model, "input_usd_per_mtok", 7.5)) is None
    assert chosen_between(before, edited("policy", "tau", 0.987)) is True
    assert chosen_between(before, edited("models", model, "status", "disabled")) is False


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"abc": {"evalset": "x", "how": "looked", "knob_alone": True}}, "SHA-256"),
        ({"a" * 64: {"evalset": "x", "how": "guessed", "knob_alone": True}}, "must be one of"),
        ({"a" * 64: {"evalset": "x", "how": "looked"}}, "knob_alone"),
        (
            {"a" * 64: {"evalset": "x", "how": "looked", "knob_alone": True, "sample": "xyz"}},
            "must be marks",
        ),
    ],
)
def test_a_damaged_record_is_refused(entry, told):
    document = CatalogDocument.parse(SMALL)
    document.set("policy", "chosen_on", entry)
    with pytest.raises(CatalogError, match=told):
        parse_catalog(document.text())
