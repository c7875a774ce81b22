"""The story of a demo: seven steps, each with what to say, what to do and what that shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hydra_core.console.frame import (
    BY_HAND,
    COMPARE,
    EXPORTS,
    HOME,
    LEARNED,
    MESSAGE,
    PUBLISH,
    WHAT_IF,
    Place,
)  # fmt: skip

#: A message that the story's first policy sends to the cheapest of its models.
SIMPLE: Final = "Write a Python function that returns the median of a list."
#: The model whose price falls, and half of what it costs, USD per million tokens.
REPRICED: Final = "claude-3-5-sonnet-20240620"
HALF: Final = (1.5, 7.5)


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        title: What it is about, in few words.
        say: The sentence to say.
        do: The one thing to do.
        shows: What can be said once that is done.
        place: Part of the page it is played on, and `where` the name of the page.
        views: What the page begins with: key of the session -> value.
        link: Further parameters of its address.
        also: A second page that it needs, with its name.
    """

    title: str
    say: str
    do: str
    shows: str
    place: Place
    where: str
    views: Mapping[str, str | float] = field(default_factory=dict)
    link: Mapping[str, str] = field(default_factory=dict)
    also: tuple[Place, str] | None = None


STEPS: Final = (
    Step(
        "The question",
        "Five models, 4,074 public benchmark questions, and what each model achieved and cost on "
        "every one of them.",
        "Read the result: so far a fixed mix of two models does better.",
        "HyDRA holds itself against the strongest simple alternative, and says when that wins.",
        HOME,
        "Home",
    ),
    Step(
        "A message",
        "A simple request goes to the cheapest of five models that can handle it.",
        "Open the receipt, then read what would change the choice.",
        "Every decision can be explained and checked: nothing is a black box.",
        MESSAGE,
        "Inspect",
        link={"text": SIMPLE},
    ),
    Step(
        "The knob",
        "One knob trades quality for cost, and every figure follows your hand.",
        "Drag τ and let go: the result and its interval follow.",
        "Each setting is measured before any user sees it.",
        BY_HAND,
        "Tune",
    ),
    Step(
        "Learn and win",
        "Outcomes teach the router what benchmarks cannot, and it is judged only on questions "
        "that it has not seen.",
        "Press Learn, wait under a minute, then take it into the catalog draft.",
        "The router now beats the best fixed mix of the same cost.",
        LEARNED,
        "Tune",
    ),
    Step(
        "Publish",
        "A release shows before and after in one table: quality, cost, result and traffic.",
        "Publish your draft, then compare it with a fixed mix of the same cost.",
        "For the same money the release resolves more questions than any fixed mix.",
        PUBLISH,
        "Releases",
        also=(COMPARE, "Compare"),
    ),
    Step(
        "Models change",
        "Models are repriced and withdrawn all the time, and nothing has to be trained again.",
        "See what Sonnet at half its price changes, then choose that a model is removed.",
        "A lower price reaches your bill at once, and you know what a model is worth before it "
        "goes.",
        WHAT_IF,
        "Catalog",
        {
            "catalog.event.kind": "reprice",
            "catalog.event.model": REPRICED,
            f"catalog.event.input.{REPRICED}": HALF[0],
            f"catalog.event.output.{REPRICED}": HALF[1],
        },
    ),
    Step(
        "Ship and undo",
        "The catalog is a text that a person can read and review; what was learned lies beside "
        "it in one zip file.",
        "Read the catalog from the top. Then open History and bring revision 1 back.",
        "Every release has an author, a date and figures, and one click takes it back.",
        EXPORTS,
        "Releases",
        {"exports.view": "Export"},
    ),
)
