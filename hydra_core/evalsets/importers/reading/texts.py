"""Texts that a program wrote as a list of one: `['Which of these ...']`."""

from __future__ import annotations

import ast
import json

import pandas as pd


def unlisted(texts: pd.Series) -> tuple[pd.Series, tuple[str, ...]]:
    """Texts without the list around each, where all of a column stand as `['...']`."""
    filled = texts[texts.str.strip() != ""]
    if filled.empty or not filled.str.fullmatch(r"(?s)\s*\[\s*['\"].*['\"]\s*\]\s*").all():
        return texts, ()
    inner = {text: _inner(text) for text in filled.unique()}
    if any(text is None for text in inner.values()):
        return texts, ()
    note = "texts were read out of the lists that they stand in, such as ['...']"
    return texts.map(lambda text: inner.get(text, text)), (note,)


def _inner(text: str) -> str | None:
    """The lines of a list of texts; None where it is none."""
    for read in (json.loads, ast.literal_eval):
        try:
            listed = read(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            return "\n".join(listed)
    return None
