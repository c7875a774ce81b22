"""One request to route, and what a request may say about it: names and checks."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from hydra_core.base.tokens import IMAGE_TOKENS, text_tokens
from hydra_core.base.types import Ability

#: Models that a request may name in one list.
MOST_NAMES: Final = 1_000
#: Field -> what it must be, in words and as a check.
Fields = Mapping[str, tuple[str, Callable[[Any], bool]]]


@dataclass(frozen=True, slots=True)
class Query:
    """One request to route.

    Attributes:
        text: The current user message.
        turn: Number of the user turn, from 1.
        conversation_id: None for a single request.
        prefix: The earlier user messages, oldest first (per-content stickiness only).
        context_tokens: Tokens the chosen model must take in (history and declared tools
            included), if known.
        allow: Only these models, None for all.
        compacted: This turn follows an explicit compaction or a background summarisation.
        current: The model the caller is on now, where no session store knows it.
        spent_usd: What the conversation has cost so far, as the caller knows it.
        context: What came before, in the form of `conversations/context.py`; only a bundle that
            was trained on it reads it.
        unspoken: Models whose upstream does not take a request of this form.
        output_tokens: The longest answer that the request allows, 0 where it sets no limit; the
            window must hold it as well.
        harness_tokens: Of harness text that is not in `text` and was not scored, estimated.
        continues: The request brings only tools' results: no person has said anything new.
        needs: Abilities (`Ability`): only models that do not lack one can serve it.
        require: Tags that the model must have.
        max_s, max_ttft_s: Seconds that an answer, or its first piece, may be expected to take.
        expected: Model -> expected seconds to the first piece and to the end, NaN where unknown;
            a model that is not named takes what the catalog says.
        only_cheapest: Why only the cheapest eligible model is left, '' where it is not so.
        stalled: Tool results in a row that report failure, or calls that are the same.
    """

    text: str
    turn: int = 1
    conversation_id: str | None = None
    prefix: tuple[str, ...] = ()
    has_image: bool = False
    needs_tools: bool = False
    context_tokens: int = 0
    allow: frozenset[str] | None = None
    deny: frozenset[str] = frozenset()
    compacted: bool = False
    current: str | None = None
    spent_usd: float = 0.0
    context: str = ""
    output_tokens: int = 0
    unspoken: frozenset[str] = frozenset()
    harness_tokens: int = 0
    continues: bool = False
    stalled: int = 0
    needs: frozenset[str] = frozenset()
    require: frozenset[str] = frozenset()
    only_cheapest: str = ""
    max_s: float | None = None
    max_ttft_s: float | None = None
    expected: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)

    @property
    def input_tokens(self) -> float:
        """Tokens of the whole request as far as they are known, at least those of its message."""
        return max(float(self.context_tokens), self.own_tokens)

    @property
    def own_tokens(self) -> float:
        """Tokens of the message itself, with its harness text and an image, estimated."""
        image = IMAGE_TOKENS if self.has_image else 0
        return text_tokens(self.text) + self.harness_tokens + image

    @property
    def window_tokens(self) -> int:
        """What a model's context window must hold: the message where nothing else is known."""
        return (self.context_tokens or round(self.input_tokens)) + self.output_tokens


class BadFieldError(Exception):
    """A field that is not known or not of its kind; the text says which, and what it must be."""


def is_count(value: object) -> TypeGuard[int]:
    """Whether a decoded value is a whole number from 0 that a float can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_names(value: Any) -> bool:  # noqa: ANN401 (decoded JSON)
    return _are_texts(value) and len(value) <= MOST_NAMES


def _is_health(value: Any) -> bool:  # noqa: ANN401 (decoded JSON)
    known = isinstance(value, dict) and len(value) <= MOST_NAMES
    return known and all(_is_amount(level) and level <= 1 for level in value.values())


FIELDS: Final[Fields] = {
    "turn": ("a whole number from 1", lambda value: is_count(value) and value != 0),
    "conversation_id": ("a text", lambda value: value is None or isinstance(value, str)),
    "prefix": ("a list of the earlier user messages", _are_texts),
    "has_image": ("true or false", lambda value: isinstance(value, bool)),
    "needs_tools": ("true or false", lambda value: isinstance(value, bool)),
    "compacted": ("true or false", lambda value: isinstance(value, bool)),
    "context_tokens": ("a whole number from 0", is_count),
    "allow": (f"a list of model ids, at most {MOST_NAMES:,}", _is_names),
    "deny": (f"a list of model ids, at most {MOST_NAMES:,}", _is_names),
    "needs": (
        f"a list of {', '.join(Ability)}",
        lambda value: _is_names(value) and set(value) <= set(Ability),
    ),
    "require": (f"a list of tags, at most {MOST_NAMES:,}", _is_names),
    "max_s": ("seconds above 0", lambda value: _is_amount(value) and value != 0),
    "max_ttft_s": ("seconds above 0", lambda value: _is_amount(value) and value != 0),
    "current": ("a model id", lambda value: value is None or isinstance(value, str)),
    "spent_usd": ("a number of USD from 0", _is_amount),
    "health": ("model ids with numbers in [0, 1]", _is_health),
}


def check_fields(found: Mapping[str, Any], known: Fields = FIELDS) -> None:
    """Make sure that every field is known and of its kind.

    Raises:
        BadFieldError: The first that is not.
    """
    for name, value in found.items():
        if name not in known:
            close = difflib.get_close_matches(name[:60], known, 1)
            hint = f'did you mean "{close[0]}"?' if close else f"known: {', '.join(known)}"
            raise BadFieldError(f"unknown key {ascii(name[:60])} ({hint})")
        words, check = known[name]
        if not check(value):
            raise BadFieldError(f'"{name}" must be {words}, got {ascii(value)[:60]}')


def limits_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """What checked fields say about the models that may serve, as arguments of `Query`."""
    return {
        "allow": frozenset(found["allow"]) if "allow" in found else None,
        "deny": frozenset(found.get("deny", ())),
        "compacted": found.get("compacted", False),
        "current": found.get("current"),
        "require": frozenset(found.get("require", ())),
        "max_s": found.get("max_s"),
        "max_ttft_s": found.get("max_ttft_s"),
        "spent_usd": float(found.get("spent_usd", 0.0)),
    }
