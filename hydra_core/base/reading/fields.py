"""Typed reading of a YAML tree: every getter records a Problem and goes on, none raises."""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from typing import Final, Self, TypeVar

from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.base.reading.yaml_reader import (
    EMPTY,
    ListNode,
    MapNode,
    Node,
    ScalarNode,
    read_yaml,
    shown,
)

_MAX_PROBLEMS: Final = 200
_MAX_SUGGESTIONS: Final = 40
_ISO_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
#: It may be a decimal point, or one between thousands.
_THOUSANDS: Final = re.compile(r"[1-9][0-9]{0,2}(?:\.[0-9]{3})+")
_NUMBER_TEXT: Final = re.compile(
    r"[-+]?[0-9]{0,20}\.?[0-9]{0,20}(?<=[0-9.])(?:[eE][-+]?[0-9]{1,3})?"
)
_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(slots=True)
class Problems:
    """Collects what is wrong; past 200 it only counts, so that a message stays readable."""

    found: list[Problem] = field(default_factory=list)
    more: int = 0
    suggestions: int = 0

    def add(self, place: str, line: int | None, message: str, remedy: str = "") -> None:
        """Record one problem; `line` is added to the place."""
        if len(self.found) >= _MAX_PROBLEMS:
            self.more += 1
            return
        at = "" if line is None else f"line {line}"
        where = f"{place} ({at})" if place and at else place or at
        self.found.append(Problem(where, message, remedy))

    def suggest(self, name: str, known: Iterable[str]) -> str:
        """`did_you_mean` for the first 40 unknown names; comparing thousands would take long."""
        self.suggestions += 1
        return did_you_mean(name, known) if self.suggestions <= _MAX_SUGGESTIONS else ""

    def listed(self) -> tuple[Problem, ...]:
        """All problems, the last one saying how many are not shown."""
        if not self.more:
            return tuple(self.found)
        rest = Problem("", f"{self.more:,} more problems are not listed", "correct these first")
        return (*self.found, rest)

    def refuse(self, kind: type[ProblemsError], source: str) -> None:
        """Raise an error of this kind where something was found."""
        if self.found:
            raise kind(source, self.listed())


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which numbers are allowed: between `lo` and `hi`; `above` excludes `lo` itself."""

    lo: float = -math.inf
    hi: float = math.inf
    above: bool = False

    def holds(self, value: float) -> bool:
        """Whether `value` is finite and inside."""
        low_enough = value > self.lo if self.above else value >= self.lo
        return math.isfinite(value) and low_enough and value <= self.hi

    def __str__(self) -> str:
        low = f"{'>' if self.above else '>='} {self.lo:,.10g}"
        if not math.isfinite(self.hi):
            return low
        return (
            f"{low} and <= {self.hi:,.10g}"
            if self.above
            else f"in [{self.lo:,.10g}, {self.hi:,.10g}]"
        )


POSITIVE: Final = Bounds(0.0, above=True)
#: Beyond these, sums and ratios of a catalog's numbers overflow while routing.
_LEAST: Final = 1e-12
LARGEST: Final = 1e12
#: Below this a price is taken for USD per token: 0.001 USD per Mtok is sold nowhere.
_LEAST_PRICE = 1e-3
SHARE: Final = Bounds(0.0, 1.0)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'tau'?`` or the list of what is known where nothing is close."""
    options = list(known)
    low = {option.lower(): option for option in options}
    close = difflib.get_close_matches(name[:64].lower(), list(low), n=1, cutoff=0.6)
    if close:
        return f"did you mean {low[close[0]]!r}?"
    if not options:
        return ""
    listed = ", ".join(options[:12]) + (", ..." if len(options) > 12 else "")
    return f"known are: {listed}"


_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")


@dataclass(frozen=True, slots=True)
class Section:
    """One mapping of the file with its path and the shared problem list.

    Attributes:
        place: How messages name it, e.g. ``models[2] 'gpt-x'``; empty for the whole file.
    """

    node: MapNode
    place: str
    problems: Problems

    def at(self, key: str) -> str:
        """The place of `key` in this section."""
        label = key[:60] if key[:60].isprintable() and " " not in key[:60] else repr(key[:60])
        if not self.place:
            return label
        named = self.place.endswith(("'", '"'))
        return f"{self.place}: {label}" if named else f"{self.place}.{label}"

    def inside(self, node: MapNode, place: str) -> Self:
        """A mapping inside this one, read in the same way."""
        return replace(self, node=node, place=place)

    def wrong(self, key: str, message: str, remedy: str = "") -> None:
        """Record a problem at `key`, on its line, or on the section's where it is absent."""
        node = self.node.get(key)
        line = node.line if node is not None else self.node.line
        self.problems.add(self.at(key), line, message, remedy)

    def schema(self, name: str) -> None:
        """Refuse a file of another schema."""
        if self.text("schema", f"begin with 'schema: {name}'") not in ("", name):
            self.wrong("schema", f"must be {name}", "this version reads only that")

    def known(self, keys: Sequence[str], what: str = "") -> None:
        """Refuse keys not in `keys`: fields, or the catalog's `what` (dimensions, benchmarks)."""
        allowed = frozenset(keys)
        message = f"is not a {what} of this catalog" if what else "is not a known key"
        for key, (name, _) in self.node.entries.items():
            if key not in allowed:
                remedy = self.problems.suggest(key, keys)
                self.problems.add(self.at(key), name.line, message, remedy)

    def _present(self, key: str, remedy: str, required: bool) -> Node | None:
        node = self.node.get(key)
        empty = isinstance(node, ScalarNode) and node.value is None
        if node is not None and not empty:
            return node
        if required:
            self.wrong(key, "is empty" if empty else "is missing", remedy)
        elif empty:
            self.wrong(key, "is empty", f"{remedy}, or remove the key")
        return None

    def _scalar(self, key: str, want: str, remedy: str, required: bool) -> ScalarNode | None:
        node = self._present(key, remedy, required)
        if node is None or isinstance(node, ScalarNode):
            return node
        self.wrong(key, f"must be {want}, got {shown(node)}", remedy)
        return None

    def number(
        self, key: str, allowed: Bounds, remedy: str, *, required: bool = True
    ) -> float | None:
        """A finite number inside `allowed`; a bool or a number in quotes is not one."""
        node = self._scalar(key, "a number", remedy, required)
        return None if node is None else self.checked_number(key, node, allowed, remedy)

    def checked_number(self, key: str, node: Node, allowed: Bounds, remedy: str) -> float | None:
        """`node` as a number inside `allowed`, problems recorded at `key`."""
        value = node.value if isinstance(node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            hint = _number_hint(value) or remedy
            self.wrong(key, f"must be a number, got {shown(node)}", hint)
            return None
        number = float(value)
        if not allowed.holds(number):
            want = f"{allowed}" if math.isfinite(number) else "a finite number"
            self.wrong(key, f"must be {want}, got {shown(value)}", remedy)
            return None
        if number > LARGEST or 0.0 < number < _LEAST:
            self.wrong(key, f"must be 0 or in [{_LEAST:g}, {LARGEST:g}], got {number:g}", remedy)
            return None
        return number

    def price(
        self, key: str, remedy: str, *, allowed: Bounds = POSITIVE, required: bool = True
    ) -> float | None:
        """USD per million tokens; one that can only be per token is recorded as a problem."""
        price = self.number(key, allowed, remedy, required=required)
        if price is not None and 0.0 < price < _LEAST_PRICE:
            message = f"{price:g} looks like a price per token"
            self.wrong(key, message, f"per million tokens it would be {price * 1e6:g}")
        return price

    def integer(self, key: str, allowed: Bounds, remedy: str) -> int | None:
        """A whole number inside `allowed`."""
        number = self.number(key, allowed, remedy)
        if number is None:
            return None
        if not number.is_integer():
            self.wrong(key, f"must be a whole number, got {number:g}", remedy)
            return None
        return int(number)

    def text(self, key: str, remedy: str, *, required: bool = True, limit: int = 10_000) -> str:
        """Text of at most `limit` characters; empty where absent or wrong."""
        node = self._scalar(key, "text", remedy, required)
        if node is None:
            return ""
        if not isinstance(node.value, str):
            self.wrong(key, f"must be text, got {shown(node)}", "put it in quotes")
            return ""
        if required and not node.value.strip():
            self.wrong(key, "is empty", remedy)
        if len(node.value) > limit:
            self.wrong(key, f"has {len(node.value):,} characters, at most {limit:,}", "shorten it")
        return node.value

    def flag(self, key: str, remedy: str, *, required: bool = True) -> bool | None:
        """true or false, nothing else."""
        node = self._scalar(key, "true or false", remedy, required)
        if node is None:
            return None
        if isinstance(node.value, bool):
            return node.value
        self.wrong(key, f"must be true or false, got {shown(node)}", remedy)
        return None

    def choice(
        self, key: str, options: type[_Choice], remedy: str, *, required: bool = True
    ) -> _Choice | None:
        """One of the words of `options`."""
        node = self._scalar(key, "a word", remedy, required)
        if node is None:
            return None
        words = [option.value for option in options]
        if node.value in words:
            return options(node.value)
        hint = did_you_mean(node.value, words) if isinstance(node.value, str) else remedy
        self.wrong(key, f"must be one of {', '.join(words)}; got {shown(node)}", hint)
        return None

    def day(self, key: str, remedy: str, *, required: bool = True) -> date | None:
        """A calendar date written YYYY-MM-DD."""
        node = self._scalar(key, "a date", remedy, required)
        if node is None:
            return None
        if isinstance(node.value, str) and _ISO_DATE.fullmatch(node.value):
            try:
                return date.fromisoformat(node.value)
            except ValueError:
                pass
        self.wrong(key, f"must be a date, got {shown(node)}", "write it as YYYY-MM-DD")
        return None

    def section(
        self, key: str, remedy: str, *, required: bool = True, keys: Sequence[str] = ()
    ) -> Self | None:
        """A nested mapping, of these `keys` alone where any are given."""
        node = self._present(key, remedy, required)
        if node is None:
            return None
        if isinstance(node, MapNode):
            inner = self.inside(node, self.at(key))
            if keys:
                inner.known(keys)
            return inner
        self.wrong(key, f"must be a mapping, got {shown(node)}", remedy)
        return None

    def items(
        self, key: str, remedy: str, *, limit: int, required: bool = True
    ) -> tuple[Node, ...]:
        """A list of at most `limit` entries; empty where absent or wrong."""
        node = self._present(key, remedy, required)
        if node is None:
            return ()
        if not isinstance(node, ListNode):
            self.wrong(key, f"must be a list, got {shown(node)}", remedy)
            return ()
        if len(node.items) > limit:
            self.wrong(key, f"has {len(node.items):,} entries, at most {limit:,}", "split it")
            return ()
        return node.items

    def sections(
        self, key: str, remedy: str, *, limit: int, required: bool = True
    ) -> Iterator[Self]:
        """The mappings of a list of at most `limit` entries; other entries are left out."""
        for number, node in enumerate(self.items(key, remedy, limit=limit, required=required)):
            if isinstance(node, MapNode):
                yield self.inside(node, f"{self.at(key)}[{number}]")
            else:
                self.wrong(key, f"must hold mappings, got {shown(node)}", remedy)

    def texts(
        self,
        key: str,
        remedy: str,
        holds: Callable[[str], object],
        fault: str = "must hold short words, got {}",
        *,
        limit: int = 50,
    ) -> tuple[str, ...]:
        """A list of at most `limit` texts that may be absent; wrong ones are left out.

        Args:
            holds: Whether a text is a right one.
            fault: What is said of another, with its value for the braces.
        """
        found = []
        for node in self.items(key, remedy, limit=limit, required=False):
            value = node.value if isinstance(node, ScalarNode) else None
            if isinstance(value, str) and holds(value):
                found.append(value)
            else:
                self.wrong(key, fault.format(shown(node)), remedy)
        return tuple(found)

    def words(self, key: str, remedy: str, known: Sequence[str] = ()) -> frozenset[str]:
        """A list of at most 50 short words, each of `known` where that is given; may be absent."""
        found = self.texts(key, remedy, _WORD.fullmatch)
        strange = [word for word in found if known and word not in known]
        for word in strange:
            self.wrong(key, f"does not know {word!r}", did_you_mean(word, known))
        return frozenset(found).difference(strange)

    def rates(
        self, known: Sequence[str], what: str, remedy: str, *, skip: str | None = None
    ) -> dict[str, float]:
        """A mapping from the catalog's `what` to numbers in [0, 1]; wrong ones are left out.

        Args:
            known: The keys allowed; where it is empty, something above failed: keys go unchecked.
            skip: A word that stands for "no number here".
        """
        if known:
            self.known(known, what)
        rates: dict[str, float] = {}
        for key in known:
            node = self.node.get(key)
            if node is None or (isinstance(node, ScalarNode) and node.value == skip is not None):
                continue
            rate = self.checked_number(key, node, Bounds(0.0, 1.0), remedy)
            if rate is not None:
                rates[key] = rate
        return rates


def read_mapping(text: str, remedy: str) -> tuple[Section | None, Problems]:
    """The mapping that is all of a file, None where there is none, and what is wrong so far.

    Args:
        text: YAML; a leading byte order mark is ignored.
        remedy: How such a file begins.
    """
    root, found = read_yaml(text.removeprefix("\ufeff"))
    problems = Problems([replace(one, remedy=remedy) if one is EMPTY else one for one in found])
    if isinstance(root, MapNode):
        return Section(root, "", problems), problems
    if root is not None:
        problems.add("", root.line, f"must be a mapping, got {shown(root)}", remedy)
    return None, problems


def _number_hint(value: object) -> str:
    """How to write a number that was written as text, empty where it is not one."""
    if not isinstance(value, str):
        return ""
    if _THOUSANDS.fullmatch(value):
        return f"write {value.replace('.', '')}, or with fewer or more decimals, without quotes"
    if _NUMBER_TEXT.fullmatch(value):
        return "write it without quotes"
    if _NUMBER_TEXT.fullmatch(re.sub("[,_ \u00a0']", "", value)):
        return "write it with a decimal point and without separators, such as 1234.5"
    return ""
