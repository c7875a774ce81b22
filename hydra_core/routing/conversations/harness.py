"""What an agent's harness adds to a person's request, by rules in a file: it is not scored.

The rules are plain text, never patterns, so that reading takes time in proportion to the message.
`harness.yaml` beside this module has those that come with HyDRA; HYDRA_HARNESS names another.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.base.reading.fields import Section, read_mapping
from hydra_core.base.tokens import text_tokens

SCHEMA: Final = "hydra.harness/v1"
SHIPPED: Final = Path(__file__).with_name("harness.yaml")
VARIABLE: Final = "HYDRA_HARNESS"
#: A tool says at its beginning or end that it failed.
_LOOK: Final = 2_000
_MOST: Final = 200
_REMEDY: Final = "give name and one of from (with to), message, result, unwrap"
_KINDS: Final = ("from", "message", "result", "unwrap")


class HarnessError(ProblemsError):
    """A file of harness rules that is not valid."""


class Block(NamedTuple):
    """From a line that begins with `start` to the next `end`; '' for the end of the message."""

    start: str
    end: str = ""


class Result(NamedTuple):
    """A user message that is a tool's result: how it begins, and how its first line ends."""

    starts: str
    ends: str = ""


class Cleaned(NamedTuple):
    """A message without harness text.

    Attributes:
        text: '' where all of it was harness text.
        ignored: Tokens of what was left out, estimated.
        is_result: Whether it is a tool's result; `text` is then the whole message.
    """

    text: str
    ignored: float = 0.0
    is_result: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What is harness text, which tool results report failure, and which requests are sub-agents'.

    Attributes:
        messages: How a message begins that is harness text as a whole.
        wrappers: Pairs of words that go, while what stands between them stays.
    """

    blocks: tuple[Block, ...] = ()
    messages: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    wrappers: tuple[Block, ...] = ()
    failure_starts: tuple[str, ...] = ()
    failure_holds: tuple[str, ...] = ()
    agent_headers: tuple[str, ...] = ()
    agent_systems: tuple[str, ...] = ()
    _signs: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        signs = tuple(one.start for one in (*self.blocks, *self.wrappers))
        object.__setattr__(self, "_signs", signs)

    def cleaned(self, text: str) -> Cleaned:
        """A user's message without harness text; one that holds none comes back as it is."""
        opening = text[:_LOOK].lstrip()
        for one in self.results:
            first_line = opening.partition("\n")[0] if opening.startswith(one.starts) else None
            if first_line is not None and first_line.rstrip().endswith(one.ends):
                return Cleaned(text, is_result=True)
        if opening.startswith(self.messages):
            return Cleaned("", text_tokens(text))
        if not any(sign in text for sign in self._signs):
            return Cleaned(text)
        kept = text
        for block in self.blocks:
            kept = _without_block(kept, block)
        for pair in self.wrappers:
            kept = _unwrapped(kept, pair)
        if kept is text:
            return Cleaned(text)
        kept = kept if kept.strip() else ""
        return Cleaned(kept, max(0.0, text_tokens(text) - text_tokens(kept)))

    def failed(self, result: str) -> bool:
        """Whether a tool's result reports failure."""
        if result.lstrip().startswith(self.failure_starts):
            return True
        seen = result if len(result) <= 2 * _LOOK else f"{result[:_LOOK]}\n{result[-_LOOK:]}"
        return any(sign in seen for sign in self.failure_holds)

    def agent(self, headers: Mapping[str, str], opening: str) -> str:
        """Which sub-agent asks: what a header says, else how its system prompt begins; '' for none.

        Headers have their names in small letters.
        """
        named = next((headers[name] for name in self.agent_headers if headers.get(name)), "")
        begin = opening[:_LOOK].lstrip()
        return named or next((one for one in self.agent_systems if begin.startswith(one)), "")


def _without_block(text: str, block: Block) -> str:
    """The text without every such block; each sign is looked at once."""
    kept: list[str] = []
    done = at = 0
    while (at := text.find(block.start, at)) >= 0:
        if at and text[at - 1] != "\n" and text[done:at].strip():
            at += len(block.start)  # in the middle of a sentence: the person speaks of it
            continue
        end = len(text) if not block.end else text.find(block.end, at + len(block.start))
        if end < 0:
            break
        kept.append(text[done:at])
        done = at = end + len(block.end)
    if not done:
        return text
    return "\n".join(piece.strip() for piece in (*kept, text[done:]) if piece.strip())


def _unwrapped(text: str, pair: Block) -> str:
    """The text without the first pair of such words; as it is where there is no pair."""
    at = text.find(pair.start)
    end = -1 if at < 0 else text.find(pair.end, at + len(pair.start))
    if end < 0 or (at and text[at - 1] != "\n"):
        return text
    pieces = (text[:at], text[at + len(pair.start) : end], text[end + len(pair.end) :])
    return "\n".join(piece.strip() for piece in pieces if piece.strip())


def said(text: str) -> tuple[str, int]:
    """What a person says in a lone message, and the tokens of harness text beside it.

    A message that is nothing but harness text counts as said.
    """
    cleaned = rules().cleaned(text)
    return (cleaned.text, round(cleaned.ignored)) if cleaned.text.strip() else (text, 0)


def rules() -> Rules:
    """The rules in force: of the file that HYDRA_HARNESS names, else those that are shipped.

    Raises:
        HarnessError: The file cannot be read or is not valid; all problems are listed.
    """
    return _load(source())


def source() -> Path:
    """The file of the rules in force."""
    named = os.environ.get(VARIABLE, "")
    return Path(named) if named else SHIPPED


@lru_cache(maxsize=8)
def _load(path: Path) -> Rules:
    try:
        return parse_rules(path.read_text(encoding="utf-8-sig"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        problem = Problem("", f"cannot be read: {error}", f"mend the path in {VARIABLE}")
        raise HarnessError(str(path), [problem]) from error


def parse_rules(text: str, source: str = "harness") -> Rules:
    """The rules in `text`; HarnessError lists all that is not valid."""
    root, problems = read_mapping(text, f"begin with 'schema: {SCHEMA}'")
    made = Rules() if root is None else _rules_of(root)
    problems.refuse(HarnessError, source)
    return made


def _rules_of(root: Section) -> Rules:
    root.known(("schema", "rules", "failures", "subagents"))
    root.schema(SCHEMA)
    blocks: list[Block] = []
    messages: list[str] = []
    results: list[Result] = []
    wrappers: list[Block] = []
    for one in root.sections("rules", _REMEDY, limit=_MOST):
        kind = _kind_of(one)
        if kind == "from":
            blocks.append(Block(_sign(one, "from"), _sign(one, "to", required=False)))
        elif kind == "message":
            messages.append(_sign(one, "message"))
        elif kind == "unwrap" and len(pair := _signs(one, "unwrap")) == 2:
            wrappers.append(Block(*pair))
        elif kind == "unwrap":
            one.wrong("unwrap", "must be two texts", "such as [<task>, </task>]")
        elif kind and (inner := one.section("result", "starts and ends")) is not None:
            inner.known(("starts", "ends"))
            results.append(Result(_sign(inner, "starts"), _sign(inner, "ends", required=False)))
    failures = root.section("failures", "starts and holds", required=False)
    agents = root.section("subagents", "headers and system", required=False)
    for part, keys in ((failures, ("starts", "holds")), (agents, ("headers", "system"))):
        if part is not None:
            part.known(keys)
    return Rules(
        blocks=tuple(blocks),
        messages=tuple(messages),
        results=tuple(results),
        wrappers=tuple(wrappers),
        failure_starts=_signs(failures, "starts"),
        failure_holds=_signs(failures, "holds"),
        agent_headers=tuple(name.lower() for name in _signs(agents, "headers")),
        agent_systems=_signs(agents, "system"),
    )


def _kind_of(one: Section) -> str:
    """What kind of rule it is; '' with the problem recorded."""
    one.known(("name", "to", *_KINDS))
    one.text("name", "what it is, such as environment", limit=100)
    given = [kind for kind in _KINDS if one.node.get(kind) is not None]
    if len(given) == 1:
        return given[0]
    one.wrong("name", f"has {len(given)} of {', '.join(_KINDS)}; one is needed", _REMEDY)
    return ""


def _sign(section: Section, key: str, *, required: bool = True) -> str:
    """Text that is looked for; one letter would be found everywhere, but for a first line's."""
    found = section.text(key, "the text as it stands there", required=required, limit=500)
    if key != "starts" and 0 < len(found.strip()) < 3:
        section.wrong(key, "is shorter than 3 characters", "it would be found in anybody's words")
    return found


def _signs(section: Section | None, key: str) -> tuple[str, ...]:
    if section is None:
        return ()
    fault, remedy = "must hold texts of 3 or more characters, got {}", "give a list, each in quotes"
    return section.texts(key, remedy, lambda text: len(text.strip()) >= 3, fault, limit=_MOST)
