"""The messages and conversations that ship with the console. No streamlit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from hydra_core.base.reading.plain_yaml import load_plain
from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.predictor.languages import LANGUAGES
from hydra_core.routing.conversations.messages import Conversation, read_messages


@dataclass(frozen=True, slots=True)
class Example:
    """A message to try; `level` is easy, medium or hard, as its author meant it."""

    id: str
    language: str
    level: str
    text: str

    @property
    def label(self) -> str:
        """Language, level and the beginning of the text on one line."""
        start = " ".join(self.text.split())
        short = start if len(start) <= 60 else f"{start[:57].rstrip()}…"
        return f"{LANGUAGES[self.language].name} · {self.level} · {short}"


@dataclass(frozen=True, slots=True)
class Scene:
    """A conversation to play, with what happens during it."""

    id: str
    title: str
    note: str
    conversation: Conversation
    images: tuple[int, ...]
    compacted: tuple[int, ...]


@lru_cache(maxsize=1)
def examples() -> tuple[Example, ...]:
    """The shipped messages, in the order of the file."""
    return tuple(Example(**row) for row in _read("examples.yaml"))


@lru_cache(maxsize=1)
def scenes() -> tuple[Scene, ...]:
    """The shipped conversations, in the order of the file."""
    return tuple(
        Scene(
            row["id"],
            row["title"],
            row["note"],
            read_messages(row["messages"], row["id"]),
            tuple(row.get("images", ())),
            tuple(row.get("compacted", ())),
        )
        for row in _read("conversations.yaml")
    )


def _read(name: str) -> list[dict[str, Any]]:
    rows = load_plain((SAMPLE_DATA / name).read_text(encoding="utf-8"))
    return cast("list[dict[str, Any]]", rows)
