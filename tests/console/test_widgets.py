"""Text from outside stays text."""

import pytest

from hydra_core.base.spelling import signed_usd, usd
from hydra_core.console.widgets import _LEGIBLE, literal
from hydra_core.evalsets.folders import folder_name


@pytest.mark.parametrize("text", ["<b>x</b>", "$1 and $2", ":red[x]", "[a](b)", ":material/home:"])
def test_literal_escapes_every_mark(text):
    escaped = literal(text)
    assert escaped.replace("\\", "") == text
    for mark in "<>$[]:":
        assert escaped.count(mark) == escaped.count("\\" + mark)


@pytest.mark.parametrize("text", ["http://a.b", "WWW.a.b", "ana@a.b"])
def test_an_address_is_parted_where_a_browser_would_link_it(text):
    assert literal(text).replace("\\", "").replace("\u2060", "") == text
    assert "\u2060" in literal(text)


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "$0"), (0.0123456, "$0.0123"), (0.2067, "$0.207"), (12.3, "$12.30")]
)
def test_usd_has_three_significant_digits(value, shown):
    assert usd(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0000032, "+$0.00000320"), (-0.0004, "−$0.000400"), (0.0, "$0")]
)
def test_a_change_of_cost_has_its_sign_and_no_exponent(value, shown):
    assert signed_usd(value) == shown


@pytest.mark.parametrize(
    ("name", "folder"),
    [("My traffic, June", "my_traffic_june"), ("../../etc", "etc"), ("日本", "eval_set")],
)
def test_folder_names_are_plain(name, folder):
    assert folder_name(name) == folder


def test_a_row_of_parts_is_whole_but_never_wider_than_the_page():
    # `max-content` would keep the pills of fifteen models in one row, most of them out of reach
    assert "min-width: fit-content" in _LEGIBLE
    assert "max-content" not in _LEGIBLE
