"""Typed questions about a state, answered by routing: a choice among models, or among tiers.

Two forms are read: OpenAI's Decisions and System One, which LiteLLM's classifier speaks. Options
that are no models of the catalog are tiers, cheapest first: the pool in its cost order is cut into
as many equal parts, and the chosen model's part is the answer.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from hydra_core.server.chat import refused
from hydra_core.server.deciding import Decided
from hydra_core.server.wire import Form, as_chat

#: Each question takes a decision of its own.
MOST_QUESTIONS: Final = 16
_MOST_OPTIONS: Final = 255
#: How LiteLLM's classifier puts its context before the message that is to be rated.
_WITH_CONTEXT: Final = re.compile(
    r"System prompt:\n(.*?)\n\nRequest:\n(.*)|\n(?:(.*?)\n\n)?Classify this message:\n(.*)",
    re.DOTALL,
)
_NAME: Final = "hydra"
_Held = TypeVar("_Held", list[Any], dict[str, Any])


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        name: Its key, or None where a Decisions question has none.
        options: What may be chosen; None for a question that is no choice.
    """

    name: str | None
    options: tuple[str, ...] | None

    def models(self, known: Collection[str]) -> tuple[str, ...]:
        """The options where they are models of the catalog, nothing where they are tiers.

        Raises:
            RequestError: Some are models and others are not.
        """
        options = self.options or ()
        strange = [one for one in options if one not in known]
        if strange and len(strange) < len(options):
            message = f"{strange[0][:60]!r} is no model of the catalog, and other options are"
            remedy = "give models alone, or tiers alone, cheapest first"
            raise refused(f"questions: {self.name or 'choice'}", message, remedy)
        return () if strange else options


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about: the state as messages of Chat Completions, and the questions."""

    messages: Any
    questions: tuple[Question, ...]


def read_decisions(found: Mapping[str, Any]) -> Asked:
    """A request of OpenAI's Decisions form; RequestError where it is none."""
    listed = _some(found.get("questions"), list, MOST_QUESTIONS, "questions")
    questions = [_decisions_question(one, i) for i, one in enumerate(listed)]
    state = as_chat({"input": found.get("input")}, Form.RESPONSES)
    return Asked(state["messages"], tuple(questions))


def read_systemone(found: Mapping[str, Any]) -> Asked:
    """A request of the System One form; a state is a text, messages, or any JSON.

    Raises:
        RequestError: It is none, or asks something else than a choice.
    """
    questions = []
    for name, one in _some(found.get("questions"), dict, MOST_QUESTIONS, "questions").items():
        criteria = one.get("criteria") if isinstance(one, Mapping) else None
        if not isinstance(one, Mapping) or one.get("type") != "choice":
            message = "is no choice, and routing answers nothing else"
            raise refused(f"questions: {name[:60]}", message, 'ask with "type": "choice"')
        listed = list(criteria) if isinstance(criteria, list | Mapping) else []
        questions.append(Question(name, _options(listed, name)))
    return Asked(_messages(found.get("state")), tuple(questions))


def decisions_answer(asked: Asked, decided: Mapping[int, Decided]) -> dict[str, Any]:
    """The answer of OpenAI's Decisions form; a question that is no choice is refused.

    `decided` has the decision of each question by its place.
    """
    answers: list[dict[str, Any]] = []
    for place, question in enumerate(asked.questions):
        if place not in decided:
            answers.append({"type": "refusal", "name": question.name})
            continue
        answer = _choice(question, decided[place])
        shares = answer["probabilities"].items()
        listed = [{"value": value, "probability": share} for value, share in shares]
        answers.append({**answer, "name": question.name, "probabilities": listed})
    tokens = _tokens(decided)
    details = {"cached_tokens": 0, "cache_write_tokens": 0}
    usage = {
        "input_tokens": tokens, "input_tokens_details": details, "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens,
    }  # fmt: skip
    return {"model": _NAME, "answers": answers, "usage": usage, "hydra": _decisions(asked, decided)}


def systemone_answer(asked: Asked, decided: Mapping[int, Decided]) -> dict[str, Any]:
    """The answer of the System One form; `decided` as above."""
    questions = enumerate(asked.questions)
    answers = {one.name: _choice(one, decided[place]) for place, one in questions}
    usage = {"input_tokens": _tokens(decided), "output_tokens": 0}
    return {"model": _NAME, "answers": answers, "usage": usage, "hydra": _decisions(asked, decided)}


def _choice(question: Question, decided: Decided) -> dict[str, Any]:
    """The option, and how probable the router was to take each: 1 but for exploration."""
    ids, options = decided.decision.pool.ids, question.options or ()
    order = np.argsort(decided.decision.pool.cost, kind="stable")
    option_of = {ids[i]: options[rank * len(options) // len(ids)] for rank, i in enumerate(order)}
    if set(options) & {spec.id for spec in decided.serving.catalog.models}:
        option_of = {name: name for name in ids}
    shares = dict.fromkeys(options, 0.0)
    for model, share in zip(ids, decided.propensities, strict=True):
        if option_of[model] in shares:
            shares[option_of[model]] += share
    choice, confidence = option_of[decided.model], shares[option_of[decided.model]]
    return {
        "type": "choice", "choice": choice, "confidence": confidence, "probabilities": shares,
    }  # fmt: skip


def _decisions(asked: Asked, decided: Mapping[int, Decided]) -> list[dict[str, str]]:
    """Beside the form: which decision each answer is, and why."""
    return [
        {
            "question": asked.questions[place].name or "",
            "decision_id": one.id,
            "model": one.model,
            "reason": one.reason,
        }
        for place, one in decided.items()
    ]


def _tokens(decided: Mapping[int, Decided]) -> int:
    readings = [one.decision.reading for one in decided.values()]
    return sum(reading.tokens for reading in readings if reading is not None)


def _decisions_question(one: object, place: int) -> Question:
    if not isinstance(one, Mapping):
        raise refused(f"questions[{place}]", "must be an object", 'with "type": "choice"')
    name = one.get("name") if isinstance(one.get("name"), str) else None
    if one.get("type") != "choice":
        return Question(name, None)
    listed = _some(one.get("choices"), list, _MOST_OPTIONS, f"questions[{place}]: choices")
    values = [choice.get("value") if isinstance(choice, Mapping) else None for choice in listed]
    return Question(name, _options(values, f"[{place}]"))


def _options(values: list[Any], name: str) -> tuple[str, ...]:
    texts = all(isinstance(one, str) and one for one in values)
    if not texts or not 2 <= len(values) <= _MOST_OPTIONS or len(set(values)) < len(values):
        message = f"must have 2 to {_MOST_OPTIONS} different options, each a text"
        raise refused(f"questions: {name[:60]}", message, "models of the catalog, or tiers")
    return tuple(values)


def _messages(state: object) -> Any:  # noqa: ANN401 (decoded JSON)
    listed = state.get("messages") if isinstance(state, Mapping) else state
    if isinstance(listed, list) and all(isinstance(m, Mapping) and "role" in m for m in listed):
        return listed
    text = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)
    split = _WITH_CONTEXT.fullmatch(text)
    before, message = (split[1] or split[3], split[2] or split[4]) if split else ("", text)
    system = [{"role": "system", "content": before}] if before else []
    return [*system, {"role": "user", "content": message}]


def _some(found: object, kind: type[_Held], most: int, place: str) -> _Held:
    if isinstance(found, kind) and 1 <= len(found) <= most:
        return found
    raise refused(place, f"must hold 1 to {most} entries", "such as one of type choice")
