"""Which names may identify a model, benchmark or dimension, and which two look alike.

An id that only looks like another ("gpt-5" with a Cyrillic letter, a full-width digit or an
invisible mark) would split prices, scores and traffic without anybody seeing it.
"""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

MAX_ID_CHARS: Final = 128
_PUNCTUATION: Final = "._-/:@+"
_CATEGORIES: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd"})
_EAST_ASIAN_AND_LATIN: Final = frozenset(
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"}
)
#: Letters of other alphabets that are drawn like a Latin one, capitals apart: Greek H is eta.
_CAPITAL_TWINS: Final = str.maketrans(
    "АВЕІКМНОРСЅТУХЈԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEIKMHOPCSTYXJQWABEZHIKMNOPTYX"
)
_SMALL_TWINS: Final = str.maketrans(
    "авекмнорстухіѕјһԁԛԝѵαβεικνορτυχωηօսհոցıɑɡ", "abekmhopctyxisjhdqwvabeikvoptuxwnouhngiag"
)


def skeleton(name: str) -> str:
    """What a reader sees: two names with one skeleton cannot be told apart.

    Compatibility forms (NFKC), case, and letters of other alphabets that look Latin are folded.
    Look-alikes inside ASCII (l and 1, O and 0) are not: qwen-vl and qwen-v1 may both exist.
    """
    normal = unicodedata.normalize("NFKC", name)
    return normal.translate(_CAPITAL_TWINS).casefold().translate(_SMALL_TWINS)


def id_problem(name: str) -> tuple[str, str] | None:
    """Message and remedy where `name` cannot be an id, else None."""
    if not name:
        return "must not be empty", "give it a short name"
    if len(name) > MAX_ID_CHARS:
        return f"has {len(name)} characters, at most {MAX_ID_CHARS}", "shorten it"
    normal = unicodedata.normalize("NFKC", name)
    bad = next((char for char in name if not _allowed(char)), None)
    if bad is not None:
        label = unicodedata.name(bad, "an unnamed character").lower()
        hint = f"write {normal!r}" if normal != name and all(map(_allowed, normal)) else ""
        allowed = f"use letters, digits and {' '.join(_PUNCTUATION)}"
        return f"{name!r} contains {label} (U+{ord(bad):04X})", hint or allowed
    if normal != name:
        return f"{name!r} is not in the normal form NFKC", f"write {normal!r}"
    if not re.match(r"[^\W_]", name):
        return f"{name!r} must begin with a letter or digit", "drop the leading punctuation"
    return _mixed_scripts(name)


def proposed_ids(names: Iterable[str]) -> dict[str, str]:
    """An id for each name: itself where it can be one, else a plain spelling; no two alike.

    "GPT 4o (May)" becomes gpt-4o-may. It is a proposal: somebody has to accept it.
    """
    listed = list(dict.fromkeys(names))
    found = {name: name for name in listed if id_problem(name) is None}
    taken = {skeleton(name) for name in found}
    for name in listed:
        if name in found:
            continue
        base = _plain(name)
        number, proposal = 1, base
        while skeleton(proposal) in taken:
            number += 1
            proposal = f"{base[: MAX_ID_CHARS - 8]}-{number}"
        taken.add(skeleton(proposal))
        found[name] = proposal
    return {name: found[name] for name in listed}


def plain_name(model: str) -> str:
    """What is left of a name without its provider, its case and the marks ``. _ - :``."""
    return re.sub(r"[._:\-\s]+", "-", model.strip().rsplit("/", 1)[-1].casefold()).strip("-")


def look_alikes(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Names that differ in case, marks, or a provider that one of them lacks; they may be one."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(plain_name(name), []).append(name)
    found = []
    for group in groups.values():
        providers = [name.rpartition("/")[0].casefold() for name in group]
        alike = [
            name
            for name, provider in zip(group, providers, strict=True)
            if not provider or providers.count(provider) > 1 or "" in providers
        ]
        found += [tuple(alike)] if len(alike) > 1 else []
    return found


def _plain(name: str) -> str:
    """The name in lower case, what an id cannot hold as single hyphens; `model` if none is left."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    kept = "".join(char if _allowed(char) else " " for char in skeleton(bare))
    words = [word.strip(_PUNCTUATION) for word in kept.split()]
    plain = "-".join(word for word in words if word)[:MAX_ID_CHARS].rstrip(_PUNCTUATION)
    return plain if plain and id_problem(plain) is None else "model"


def _allowed(char: str) -> bool:
    return char in _PUNCTUATION or unicodedata.category(char) in _CATEGORIES


def _mixed_scripts(name: str) -> tuple[str, str] | None:
    """Letters of two alphabets in one id, the usual disguise; East Asian ones go with Latin."""
    scripts: dict[str, str] = {}
    for char in name:
        if char not in _PUNCTUATION and not (char.isascii() and char.isdigit()):
            scripts.setdefault(unicodedata.name(char, "?").split(" ", 1)[0], char)
    if len(scripts) < 2 or scripts.keys() <= _EAST_ASIAN_AND_LATIN:
        return None
    found = ", ".join(f"{char!r} ({script.lower()})" for script, char in scripts.items())
    return f"{name!r} mixes alphabets: {found}", "retype it in one alphabet"
