"""Graders: an answer and what its message brings -> how well it was solved, in [0, 1].

`grade.yaml` names them, with budget and limits of a collection; `grade.example.yaml` has every key.
"""

import json
import math
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from hydra_core.base.reading.fields import POSITIVE, SHARE, Bounds, Section
from hydra_core.base.reading.yaml_reader import ScalarNode
from hydra_core.lab.labeling.config import JsonMode, Server, flag, read_server, read_settings, whole

#: 12,5 and 0,125 and 1.234,5; 12,500 has a group of thousands, and 1,2,3 is a list.
_COMMA: Final = (
    r"(?<![\d,.])(?:\d{1,3}(?:\.\d{3})+,\d+|0,\d+|\d{4,},\d+|\d+,(?:\d{1,2}|\d{4,}))(?![\d,])"
)
_PLAIN: Final = (
    rf"(?:{_COMMA}|(?:\d{{1,3}}(?:[,'’\u00a0\u202f]\d{{3}})+|\d+)(?:\.\d+)?"
    r"(?:[eE][-+]?\d{1,3})?|\.\d+)"
)
#: A sign counts only where no range or name ends before it: 3-5, COVID-19. 3/4 is one number,
#: 3/4/2024 are three.
_NUMBER: Final = re.compile(
    rf"(?:(?<![\w)])[-+])?(?:(?<![\d/]){_PLAIN}/{_PLAIN}(?![\d/])|{_PLAIN})"
)
_FRACTION: Final = re.compile(r"\\[dt]?frac\{(\d+)\}\{(\d+)\}")
_SIGNS: Final = re.compile("[¼½¾⅐-⅞]")
#: Between a whole number and a fraction that are written together.
_BEHIND: Final = re.compile(r"(?<=\d)(?=[¼½¾⅐-⅞]|\\[dt]?frac\{)")
#: 1 3/4 is one number; 2024 3/4 are two.
_MIXED: Final = re.compile(r"(?<![\d.,/])(\d{1,3})[ \u00a0]+(\d{1,3})/(\d{1,3})(?![\d/])")
_LATEX_GROUP: Final = re.compile(r"(?<=\d)(?:\{,\}|\\,)(?=\d{3})")
_POWER: Final = re.compile(r"(?<=\d)\s*(?:[×·*x]|\\times|\\cdot)\s*10\^\{?([-+]?\d{1,3})\}?")
_POWER_ALONE: Final = re.compile(r"(?<![\w.,^/])10\^\{?([-+]?\d{1,3})\}?")
_RAISED: Final = re.compile("(?<=10)[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_PLAIN_DIGITS: Final = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_GROUPS: Final = str.maketrans("", "", ",'’\u00a0\u202f")
#: Letters that are no word: not the I of "I think", the A of "A cell", the a of "is a protein".
_LETTER: Final = r"((?!I\s+[a-z])[A-Z](?![A-Za-z'])|[a-z](?![\w'])(?!\s+\w))"
#: Where the letter stands, the surest first: "The answer is (C)", a line of its own at the
#: beginning, "B) Paris" there without another such option, "option C", and the last letter that
#: stands alone.
_CHOICES: Final = (
    re.compile(rf"\b(?i:answer)\b(?:\s+is\b)?[\s*:(]*{_LETTER}"),
    re.compile(r"\A\W*([A-Za-z])\W*(?:\n|\Z)"),
    re.compile(
        r"\A\W*([A-Z])\W{0,2}[).:]"
        r"(?!(?s:.*)(?:(?<!\w)[A-Z]\W{0,2}[):]|\n\W*[A-Z]\.))"
    ),
    re.compile(rf"\b(?i:option|choice)\b(?:\s+is\b)?[\s*:(]*{_LETTER}"),
    re.compile(
        r"(?<![A-Za-z])((?!I\s+[a-z])(?!A\s+(?!(?:is|because|since|as|seems|would)\b)[a-z])[A-Z])"
        r"(?![A-Za-z'])"
    ),
)
_REFERENCE: Final = re.compile(r"\W*([A-Za-z])(?![\w'])")
#: Characters of an answer that a pattern is tried on.
_MOST_CHARS: Final = 200_000
_MOST_OUTPUT: Final = 1_000_000
#: An answer up to this length takes any ordinary pattern no time to speak of.
_SHORT: Final = 4_000
_PATTERN_S: Final = 5.0
#: The tolerance of the number grader by default: what binary fractions and printed digits lose.
_ROUNDING: Final = 1e-6
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
            As it is by default, it allows for rounding alone: 1,048,577 is not 1,048,576.
        argv: For command: the program and its arguments; no shell.
        twice_share: For judge and people: share of the answers that are graded a second time.
    """

    kind: Kind
    ignore_case: bool = False
    tolerance: float = _ROUNDING
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


def check_reference(grader: Grader, message: Mapping[str, Any]) -> None:
    """Refuse what would keep every answer to a message from being graded, before one is paid for.

    Raises:
        UngradedError: Its reference is none, such as a word where a number belongs.
    """
    if grader.kind not in (Kind.COMMAND, Kind.JUDGE, Kind.PEOPLE):
        grade(grader, "0", message)


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
    found = _NUMBER.findall(_written_out(answer[-_MOST_CHARS:]))
    if not found:
        return 0.0
    last = _value(found[-1])
    for one in _references(message):
        try:
            right = _value(_written_out(one.strip().strip("$€£¥%").strip()))
        except ValueError:
            raise UngradedError(f"the reference {one[:40]!r} is not a number") from None
        allowed = grader.tolerance * max(1.0, abs(right))
        if abs(last - right) <= (min(allowed, 0.5) if grader.tolerance <= _ROUNDING else allowed):
            return 1.0
    return 0.0


def _written_out(text: str) -> str:
    """The same with powers of ten, fractions and thousands in signs that a number may have."""
    text = _BEHIND.sub(" ", text.replace("−", "-").replace("–", "-"))
    text = _LATEX_GROUP.sub(",", _FRACTION.sub(r"\1/\2", text))
    text = _SIGNS.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), text)
    text = _MIXED.sub(_unmixed, text.replace("\u2044", "/"))
    text = _RAISED.sub(lambda found: "^" + found[0].translate(_PLAIN_DIGITS), text)
    return _POWER_ALONE.sub(r"1e\1", _POWER.sub(r"e\1", text))


def _unmixed(match: re.Match[str]) -> str:
    whole, above, below = map(int, match.groups())
    return repr(whole + above / below) if above < below else match[0]


def _value(number: str) -> float:
    """The value of a number or fraction, NaN of one by 0; ValueError where it is none."""
    above, _, below = number.partition("/")
    if below:
        divisor = _value(below)
        return _value(above) / divisor if divisor else math.nan
    if re.fullmatch(f"[-+]?{_COMMA}", number):
        number = number.replace(".", "").replace(",", ".")
    return float(number.translate(_GROUPS))


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
    _, fence, rest = answer.partition("```")
    body, end, _ = rest.partition("```")
    return body.partition("\n")[2] if fence and end else answer


def _multiple_choice(grader: Grader, answer: str, message: Mapping[str, Any]) -> float:
    del grader
    right = set()
    for one in _references(message):
        letter = _REFERENCE.match(one)
        if letter is None:
            raise UngradedError(f"the reference {one[:40]!r} is no letter")
        right.add(letter[1].upper())
    stated = next((found for one in _CHOICES if (found := one.findall(answer))), [])
    return float(bool(stated) and stated[-1].upper() in right)


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
    """A score in [0, 1] out of a number or JSON with `score`; UngradedError where it is none."""
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


SCHEMA: Final = "hydra.grade/v1"
#: A commented file to start from.
EXAMPLE: Final = Path(__file__).with_name("grade.example.yaml")
JUDGE: Final = "judge"
_KEYS: Final = (
    *("schema", "budget_usd", "max_tokens", "concurrency", "default", "graders", "judge"),
    *("allow_judge_as_model", "honours_idempotency_key"),
)
_GRADER_KEYS: Final = (
    *("kind", "ignore_case", "tolerance", "pattern", "schema", "argv", "timeout_s", "rubric"),
    "twice_share",
)


@dataclass(frozen=True, slots=True)
class GradeSettings:
    """What a collection may spend and how answers are graded.

    Attributes:
        honours_idempotency_key: Whether every upstream answers a repeated call from the first one.
    """

    budget_usd: float
    max_tokens: int
    concurrency: int
    default: str
    graders: Mapping[str, Grader]
    judge: Server | None
    allow_judge_as_model: bool
    honours_idempotency_key: bool


def load_settings(path: Path) -> GradeSettings:
    """Read a `grade.yaml`.

    Raises:
        LabelError: Every problem found, with its line.
        OSError: The file or one it names cannot be read.
    """
    return read_settings(path, SCHEMA, _settings)


def _settings(top: Section, folder: Path) -> GradeSettings | None:
    top.known(_KEYS)
    if top.text("schema", f"write schema: {SCHEMA}") not in ("", SCHEMA):
        top.wrong("schema", "does not say how answers are graded", f"write schema: {SCHEMA}")
    budget = top.number("budget_usd", POSITIVE, "the most that the calls may cost")
    tokens = whole(top, "max_tokens", 2048, Bounds(16, 1e6))
    at_once = whole(top, "concurrency", 4, Bounds(1, 512))
    graders = _graders(top, folder)
    default = top.text("default", "the name of one grader", required=len(graders) != 1)
    default = default or next(iter(graders), "")
    if graders and default not in graders:
        top.wrong("default", f"{default!r} is no grader", f"one of {', '.join(graders)}")
    judge = _judge(top)
    if judge is None and any(one.kind is Kind.JUDGE for one in graders.values()):
        top.wrong("judge", "is missing though a grader is of kind judge", "add its server")
    if top.problems.found or budget is None or tokens is None or at_once is None:
        return None
    return GradeSettings(
        budget, tokens, at_once, default, graders, judge,
        flag(top, "allow_judge_as_model"), flag(top, "honours_idempotency_key"),
    )  # fmt: skip


def _graders(top: Section, folder: Path) -> dict[str, Grader]:
    section = top.section("graders", "one entry for each grader")
    if section is None:
        return {}
    found = {}
    for name in section.node.entries:
        one = section.section(name, "such as {kind: exact}", keys=_GRADER_KEYS)
        if one is None:
            continue
        kind = one.choice("kind", Kind, f"one of {', '.join(Kind)}")
        if kind is not None:
            found[name] = _grader(one, kind, folder)
    return found


def _grader(one: Section, kind: Kind, folder: Path) -> Grader:
    pattern = one.text("pattern", "a regular expression", required=False)
    try:
        re.compile(pattern)
    except re.error as error:
        one.wrong("pattern", f"is not valid: {error}", "a Python regular expression")
    numbers = {
        "tolerance": one.number("tolerance", Bounds(0.0), "such as 0.001", required=False),
        "timeout_s": one.number("timeout_s", POSITIVE, "seconds, such as 30", required=False),
        "twice_share": one.number("twice_share", SHARE, "such as 0.05", required=False),
    }
    return Grader(
        kind,
        flag(one, "ignore_case"),
        pattern=pattern,
        schema=_schema(one, folder),
        argv=_argv(one) if kind is Kind.COMMAND else (),
        rubric=_text_of(one, "rubric", folder) if kind is Kind.JUDGE else "",
        **{name: number for name, number in numbers.items() if number is not None},
    )


def _argv(one: Section) -> tuple[str, ...]:
    remedy = "the program and its arguments, such as [python, grade.py]"
    nodes = one.items("argv", remedy, limit=100)
    words = [str(n.value) if isinstance(n, ScalarNode) else "" for n in nodes]
    if not words or not all(words):
        one.wrong("argv", "must hold the program and its arguments", remedy)
    return tuple(words)


def _schema(one: Section, folder: Path) -> Mapping[str, Any] | None:
    text = _text_of(one, "schema", folder)
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        one.wrong("schema", "the file holds no JSON object", "a JSON schema")
        return None
    return found


def _text_of(one: Section, key: str, folder: Path) -> str:
    """The content of the file that a key names; '' where it names none."""
    name = one.text(key, "a file beside this one", required=False)
    if not name:
        return ""
    path = folder / name
    if not path.is_file():
        one.wrong(key, f"there is no file {path}", "name a file beside this one")
        return ""
    return path.read_text(encoding="utf-8")


def _judge(top: Section) -> Server | None:
    one = top.section(JUDGE, "the judge's server", required=False)
    if one is None:
        return None
    return read_server(one, JUDGE, at_once=4, most_tokens=512, mode=JsonMode.OBJECT)
