"""YAML of a small file that describes others: plain values only, refused in milliseconds.

libyaml reads the events first, for what is refused, then composes the nodes; what a plain scalar
means is YAML 1.2, as ruamel says it.
"""

from collections.abc import Mapping, Sequence
from io import StringIO
from math import isfinite
from typing import Any, ClassVar, Final

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.resolver import implicit_resolvers
from yaml.constructor import ConstructorError
from yaml.events import AliasEvent, CollectionStartEvent, NodeEvent, ScalarEvent

from hydra_core.base.errors import Problem

Yaml = Mapping[str, object]

#: The most bytes of such a file.
MAX_BYTES: Final = 100_000
_MAX_DEPTH: Final = 12
_MAX_EVENTS: Final = 4_000
# libyaml where the wheel has it (every published one has); the pure parser is slower only.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Plain(_LOADER):  # type: ignore[misc]
    """Builds plain values by YAML 1.2 and refuses a key that is given twice."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ANN401
        """The mapping of a node.

        Raises:
            ConstructorError: A key is given twice, or is no plain value.
        """
        pairs = self.construct_pairs(node, deep=True)
        try:
            found = dict(pairs)
        except TypeError as error:
            raise ConstructorError("while constructing a mapping", node.start_mark) from error
        if len(found) < len(pairs):
            raise ConstructorError("while constructing a mapping", node.start_mark)
        return found

    def integer(self, node: Any) -> int:  # noqa: ANN401
        """An int in any of the notations of YAML 1.2."""
        text = self.construct_scalar(node).replace("_", "")
        return int(text, 0) if text.lstrip("+-")[:2] in ("0b", "0o", "0x") else int(text)


for _versions, _tag, _pattern, _first in implicit_resolvers:
    if (1, 2) in _versions and not _tag.endswith(":merge"):
        _Plain.add_implicit_resolver(_tag, _pattern, _first)
_Plain.add_constructor("tag:yaml.org,2002:int", _Plain.integer)


def load_plain(text: str) -> object:
    """The value of one document.

    Raises:
        YAMLError, ValueError: It is no YAML.
        RecursionError: It is nested too deeply.
    """
    return yaml.load(text, _Plain)  # noqa: S506 (a safe loader)


class Problems(list[Problem]):
    """What is wrong with a file, collected to be said together."""

    def say(self, place: str, message: str, remedy: str = "") -> None:
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


def read_plain_yaml(text: str, most: int = _MAX_EVENTS) -> tuple[object, Problem | None]:
    """The value that `text` holds, of `most` values at most, or the first thing that is wrong."""
    try:
        trick = _trick(text, most)
        return (None, trick) if trick else (load_plain(text), None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        return None, Problem("", f"is not valid YAML: {first[0]}")


def _trick(text: str, most: int) -> Problem | None:
    """The first tag, anchor, alias or excess in `text`, before anything is built."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if count > most:
            return Problem("", f"holds more than {most:,} values", "most need some 1,000")
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


def plain_text(content: object) -> str:
    """The text of such a file: keys in their order, what is flat on one line."""
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = None
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.width = 100
    out = StringIO()
    writer.dump(content, out)
    return out.getvalue()
