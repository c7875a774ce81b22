"""What Robustness says first: green only where neither claims nor harmless changes move a route."""

from dataclasses import replace

import pytest

from hydra_core.console.inspect.robustness import headline
from hydra_core.lab.robustness.findings import EVERYONE, AttackRow, Findings, FlipRow
from hydra_core.replay.significance import wilson

N = 400


def found(attacks_won: int, moved: int) -> Findings:
    """Of 400 attacks and 400 messages."""
    rows = tuple(
        AttackRow(family, EVERYONE, own, N, wilson(attacks_won, N), 1.0)
        for own in (True, False)
        for family in ("keywords", EVERYONE)
    )
    flips = (
        FlipRow("all lower case", N, wilson(0, N)),
        FlipRow("typing slips", N, wilson(moved, N)),
    )
    return Findings(0.24, N, N, rows, (), flips)


@pytest.mark.parametrize(
    ("attacks_won", "moved", "tone"),
    [(2, 2, "success"), (2, 84, "warning"), (84, 2, "warning"), (20, 20, "info"), (2, 20, "info")],
)
def test_a_harmless_change_that_moves_routes_is_never_green(attacks_won, moved, tone):
    assert headline(found(attacks_won, moved))[0] == tone


def test_the_share_of_moved_messages_is_in_the_headline():
    _, title, text = headline(found(2, 84))
    assert title == "Harmless changes of the text change the model"
    assert "typing slips" in text
    assert "21.0 %" in text


def test_a_pool_of_two_is_not_told_to_turn_its_knob():
    one = replace(found(0, 2), n=1, cheap=0)
    _, title, text = headline(one)
    assert title == "Nothing to attack here"
    assert text.startswith("1 message, and none goes to a cheaper model")
    assert "With more than two models, turn the knob" in text
