"""YAML of a small file that describes others: plain values only, refused in milliseconds.

No tags, no anchors or aliases, no duplicate keys, and bounds on values and depth. libyaml reads the
events first; ruamel's own parser, which builds the values, takes minutes for what a hostile
megabyte can hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from yaml.events import AliasEvent, CollectionStartEvent, NodeEvent, ScalarEvent

from hydra_core.base.errors import Problem

Yaml = Mapping[str, object]

#: The most bytes of such a file.
MAX_BYTES: Final = 100_000
_MAX_DEPTH: Final = 12
_MAX_EVENTS: Final = 4_000
# libyaml where the wheel has it (every published one has); the pure parser is slower only.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Problems(list[Problem]):
    """What is wrong with a file, collected to be said together."""

    def say(self, place: str, message: str, remedy: str = "") -> None:
        """Add one."""
        self.append(Problem(place, message, remedy))


def mapping(data: Yaml, key: str, problems: Problems, place: str = "") -> Yaml:
    """The mapping at `key`, empty where there is none; says so where it is something else."""
    value = data.get(key, {})
    if isinstance(value, dict):
        return {str(name): item for name, item in value.items()}
    problems.say(place or key, f"must be a mapping, got {value!r:.80}")
    return {}


def numbers(value: object) -> tuple[float, ...] | None:
    """`value` as finite floats, or None when it is anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    fine = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in value)
    found = tuple(float(v) for v in value) if fine else ()
    return found if fine and all(isfinite(v) for v in found) else None


def read_plain_yaml(text: str) -> tuple[object, Problem | None]:
    """The value that `text` holds, or the first thing that is wrong with it."""
    try:
        trick = _trick(text)
        return (None, trick) if trick else (YAML(typ="safe", pure=True).load(text), None)
    except (yaml.YAMLError, YAMLError, ValueError, RecursionError) as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        return None, Problem("", f"is not valid YAML: {first[0]}")


def _trick(text: str) -> Problem | None:
    """The first tag, anchor, alias or excess in `text`, before anything is built."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if count > _MAX_EVENTS:
            return Problem("", f"holds more than {_MAX_EVENTS:,} values", "most need some 1,000")
        place = f"line {event.start_mark.line + 1}" if event.start_mark else ""
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
            return Problem(place, "anchors and aliases are not allowed", "write the value out")
        if isinstance(event, (ScalarEvent, CollectionStartEvent)) and event.tag:
            return Problem(place, f"the tag {event.tag} is not allowed", "use plain YAML values")
        starts = isinstance(event, CollectionStartEvent)
        depth += starts - (type(event).__name__ in {"MappingEndEvent", "SequenceEndEvent"})
        if depth > _MAX_DEPTH:
            return Problem(place, f"nested deeper than {_MAX_DEPTH} levels")
    return None
