"""`grade.yaml`: graders, budget and limits of a collection; `grade.example.yaml` has every key."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hydra_core.base.reading.fields import POSITIVE, SHARE, Bounds, Section
from hydra_core.base.reading.yaml_reader import ScalarNode
from hydra_core.lab.collect.graders import Grader, Kind
from hydra_core.lab.labeling.config import (
    JsonMode,
    Server,
    flag,
    read_server,
    read_settings,
    whole,
)

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
