"""The story of a demo: seven steps, each with one sentence to say and one thing to do."""

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


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        title: What it is about, in few words.
        say: The sentence to say.
        do: The one thing to do.
        place: Part of the page it is played on, and `where` the name of the page.
        views: Which view of the page it begins at: state key -> view.
        also: A second page that it needs, with its name.
    """

    title: str
    say: str
    do: str
    place: Place
    where: str
    views: Mapping[str, str] = field(default_factory=dict)
    also: tuple[Place, str] | None = None


STEPS: Final = (
    Step(
        "What is loaded",
        "Thousands of real messages, five models, and what each model really achieved and cost "
        "on every one of them.",
        "Read the verdict: so far the router is no better than a fixed mix of two models.",
        HOME,
        "Home",
    ),
    Step(
        "Message and receipt",
        "Every decision explains itself: what the message needs, who can do it, and what would "
        "change the choice.",
        "Pick another message, then open its receipt.",
        MESSAGE,
        "Inspect",
    ),
    Step(
        "Knob and verdict",
        "One knob trades quality for cost, and the verdict says honestly whether routing pays.",
        "Drag τ: the figures follow your hand, the verdict comes when you let go.",
        BY_HAND,
        "Tune",
    ),
    Step(
        "Learn and win",
        "Outcomes teach the router what no benchmark could tell it; it is judged only on "
        "messages it had not seen.",
        "Press Learn, wait under a minute, then take it into the catalog draft.",
        LEARNED,
        "Tune",
    ),
    Step(
        "Models change",
        "Models are repriced, withdrawn and released all the time, and nothing has to be trained "
        "again.",
        "Under “What if”, choose that a model is repriced, then removed, then added.",
        WHAT_IF,
        "Catalog",
    ),
    Step(
        "Publish and undo",
        "A change goes out with its figures and its reason, and one click takes it back.",
        "Publish your draft, compare it with what was before, then bring revision 1 back under "
        "History.",
        PUBLISH,
        "Releases",
        also=(COMPARE, "Compare"),
    ),
    Step(
        "One YAML file",
        "Prices, evidence and policy stand in one file that a person can read and review: it is "
        "all that a router needs.",
        "Read the YAML from the top: who published it and why, and what was measured.",
        EXPORTS,
        "Releases",
        {"exports.view": "Export"},
    ),
)
