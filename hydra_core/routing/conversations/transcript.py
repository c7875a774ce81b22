"""Conversations written down as "User: ... Assistant: ...", as people paste them."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["transcript_messages"]

_ROLES: Final = {
    "system": "system", "user": "user", "human": "user", "you": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
}  # fmt: skip
_SPEAKER: Final = re.compile(
    rf"^[ \t]*[*_#]*[ \t]*({'|'.join(_ROLES)})[ \t]*[*_]*[ \t]*:[*_]*[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)


def transcript_messages(text: str) -> list[dict[str, str]] | None:
    """The messages of a transcript in the OpenAI form; None where it does not begin as one.

    A line that begins with a speaker (User, Human, You, Assistant, AI, Bot, Model or System, in any
    case, bold or not) and a colon begins a message; everything up to the next belongs to it.
    """
    starts = list(_SPEAKER.finditer(text))
    if not starts or text[: starts[0].start()].strip():
        return None
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return [
        {"role": _ROLES[match[1].lower()], "content": text[match.end() : end].strip()}
        for match, end in zip(starts, ends, strict=True)
    ]
