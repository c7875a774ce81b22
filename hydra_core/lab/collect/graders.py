"""Graders: an answer and what its message brings -> how well it was solved, in [0, 1]."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

_NUMBER: Final = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?|[-+]?\.\d+"
)
_STATED: Final = re.compile(
    r"(?:answer|option|choice)\s*(?:is|:)?\s*\(?\**([A-Z])\b", re.IGNORECASE
)
_LONE: Final = re.compile(r"(?<![A-Za-z])\(?([A-Z])\)?(?![A-Za-z'])")
#: Characters of an answer that a pattern is tried on.
_MOST_CHARS: Final = 200_000
_MOST_OUTPUT: Final = 1_000_000
#: An answer up to this length takes any ordinary pattern no time to speak of.
_SHORT: Final = 4_000
_PATTERN_S: Final = 5.0
_SEARCH: Final = (
    "import json, re, sys; patterns, answer = json.load(sys.stdin); "
    "print(int(any(re.search(one, answer) for one in patterns)))"
)


class Kind(StrEnum):
    """How an answer is graded."""

    EXACT = "exact"
    CONTAINS = "contains"
    REGEX = "regex"
    NUMBER = "number"
    JSON_SCHEMA = "json_schema"
    MULTIPLE_CHOICE = "multiple_choice"
    COMMAND = "command"
    JUDGE = "judge"
    PEOPLE = "people"


class UngradedError(Exception):
    """An answer that could not be graded; `str(error)` says why. It never counts as wrong."""


@dataclass(frozen=True, slots=True)
class Grader:
    """One grader of GRADE.yaml.

    Attributes:
        ignore_case: For exact and contains.
        tolerance: For number: largest difference, relative to the reference where that is over 1.
        argv: For command: the program and its arguments; no shell.
        twice_share: For judge and people: share of the answers that are graded a second time.
    """

    kind: Kind
    ignore_case: bool = False
    tolerance: float = 1e-6
    pattern: str = ""
    schema: Mapping[str, Any] | None = None
    argv: tuple[str, ...] = ()
    timeout_s: float = 30.0
    rubric: str = ""
    twice_share: float = field(default=0.0, repr=False)  # a run may go on with another share


def needs_reference(grader: Grader) -> bool:
    """Whether a message must bring a `reference` to be graded so."""
    if grader.kind is Kind.REGEX:
        return not grader.pattern
    if grader.kind is Kind.JSON_SCHEMA:
        return grader.schema is None
    return grader.kind not in (Kind.COMMAND, Kind.JUDGE, Kind.PEOPLE)


def grade(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    """Grade an answer by what needs no model.

    Args:
        message: The message's own fields, `reference` among them.

    Raises:
        UngradedError: The grader could not tell, with the reason.
    """
    return _GRADERS[grader.kind](grader, answer, message)


def _folded(grader: Grader, text: str) -> str:
    text = " ".join(text.split())
    return text.casefold() if grader.ignore_case else text


def _references(message: Mapping[str, Any]) -> list[str]:
    """Every text that counts as right."""
    found = message.get("reference")
    several = found if isinstance(found, list) else [found]
    if not several or any(isinstance(one, dict | bool) or one is None for one in several):
        raise UngradedError("the message has no reference")
    return [str(one) for one in several]


def _exact(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    given = _folded(grader, answer)
    return float(any(given == _folded(grader, one) for one in _references(message)))


def _contains(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    given = _folded(grader, answer)
    return float(any(_folded(grader, one) in given for one in _references(message)))


def _regex(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    patterns = [grader.pattern] if grader.pattern else _references(message)
    try:
        compiled = [re.compile(one) for one in patterns]
    except re.error as error:
        raise UngradedError(f"the pattern is not valid: {error}") from None
    if len(answer) > _SHORT:
        return _regex_apart(patterns, answer[:_MOST_CHARS])
    return float(any(one.search(answer) for one in compiled))


def _regex_apart(patterns: Sequence[str], answer: str) -> float:
    """In a process of its own, which can be stopped: on some answers a pattern takes for ever."""
    try:
        done = subprocess.run(  # noqa: S603 (our own lines)
            [sys.executable, "-I", "-S", "-c", _SEARCH], input=json.dumps([patterns, answer]),
            capture_output=True, text=True, timeout=_PATTERN_S, check=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UngradedError(f"the pattern took over {_PATTERN_S:g} s on this answer") from None
    return float(done.stdout)


def _number(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    found = _NUMBER.findall(answer[-_MOST_CHARS:])
    if not found:
        return 0.0
    last = float(found[-1].replace(",", ""))
    for one in _references(message):
        try:
            right = float(one.replace(",", ""))
        except ValueError:
            raise UngradedError(f"the reference {one[:40]!r} is not a number") from None
        if abs(last - right) <= grader.tolerance * max(1.0, abs(right)):
            return 1.0
    return 0.0


def _json_schema(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    schema = grader.schema if grader.schema is not None else message.get("reference")
    if not isinstance(schema, Mapping):
        raise UngradedError("the message has no schema")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise UngradedError(f"the schema is not valid: {error.message}"[:200]) from None
    try:
        found = json.loads(_unfenced(answer))
    except (ValueError, RecursionError):
        return 0.0
    return float(Draft202012Validator(schema).is_valid(found))


def _unfenced(answer: str) -> str:
    """What stands in the first code block; the whole answer where there is none."""
    _, fence, rest = answer.partition("```")
    body, end, _ = rest.partition("```")
    return body.partition("\n")[2] if fence and end else answer


def _multiple_choice(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    del grader
    stated = _STATED.findall(answer) or _LONE.findall(answer)
    if not stated:
        return 0.0
    right = {one.strip().strip("().").upper() for one in _references(message)}
    return float(stated[-1].upper() in right)


def _command(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    """The operator's own program: JSON on standard input, a number or {"score": ...} out."""
    asked = json.dumps({**message, "answer": answer})
    try:
        done = subprocess.run(  # noqa: S603 (the operator's own program, no shell)
            grader.argv, input=asked, capture_output=True, text=True, timeout=grader.timeout_s,
            check=False, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UngradedError(f"the command took over {grader.timeout_s:g} s") from None
    except OSError as error:
        raise UngradedError(f"the command could not be run: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        why = f": {said[-1][:120]}" if said else ""
        raise UngradedError(f"the command ended with {done.returncode}{why}")
    return score_of(done.stdout[:_MOST_OUTPUT])


def score_of(text: str) -> float:
    """A score in [0, 1] out of a number or a JSON object with `score`.

    Raises:
        UngradedError: It is neither, or out of range.
    """
    begin, end = text.find("{"), text.rfind("}")
    try:
        found: Any = json.loads(text[begin : end + 1] if 0 <= begin < end else text)
    except (ValueError, RecursionError):
        raise UngradedError(f"{text.strip()[:60]!r} is no score") from None
    score = found.get("score") if isinstance(found, dict) else found
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise UngradedError(f"{str(score)[:60]!r} is no score")
    if not 0.0 <= score <= 1.0:
        raise UngradedError(f"the score {score:g} does not lie between 0 and 1")
    return float(score)


#: Those that grade by themselves; a judge's server and people are asked elsewhere.
_GRADERS: Final[Mapping[Kind, Callable[[Grader, str, Mapping[str, Any]], float]]] = {
    Kind.EXACT: _exact,
    Kind.CONTAINS: _contains,
    Kind.REGEX: _regex,
    Kind.NUMBER: _number,
    Kind.JSON_SCHEMA: _json_schema,
    Kind.MULTIPLE_CHOICE: _multiple_choice,
    Kind.COMMAND: _command,
}


def agreement(twice: Sequence[tuple[float, float]]) -> float | None:
    """Share of answers whose two gradings differ by less than .25; None without any."""
    if not twice:
        return None
    return sum(abs(a - b) < 0.25 for a, b in twice) / len(twice)
