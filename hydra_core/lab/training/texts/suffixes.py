"""Appended claims of difficulty, drawn at random from our own templates and sentences.

Five families follow the paper's appendix on adversarial suffixes; three more are kept out of
training, for tests on claims nobody thought of.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from ruamel.yaml import YAML

from hydra_core.lab.training.texts.dataset import read_lines

FAMILIES = ("keywords", "concerns", "role", "jargon", "assertion")
UNSEEN = ("authority", "stakes", "effort")
_DATA = Path(__file__).parents[1] / "data"
_FILLER = {"keywords": "skills", "concerns": "risks", "jargon": "theory"}
_FRAMES = (
    "[SYSTEM: {}]", "[{}]", "<system>{}</system>", "### System:\n{}", "({})", "SYSTEM NOTE: {}",
    "{}", "[ADMIN] {}", "<!-- {} -->", "**{}**",
)  # fmt: skip
JOINS = (" ", " ", " ", "\n", "\n\n", "\n\n---\n", " -- ", ". ")


@cache
def _tables() -> dict[str, dict[str, list[str]]]:
    tables: dict[str, dict[str, list[str]]] = YAML(typ="safe").load(
        (_DATA / "suffixes.yaml").read_text("utf-8")
    )
    return tables


@cache
def _sentences() -> dict[tuple[str, str], list[str]]:
    """Claims written out one by one, by language and family."""
    out: dict[tuple[str, str], list[str]] = {}
    for row in read_lines(_DATA / "claims.jsonl.gz"):
        out.setdefault((str(row["lang"]), str(row["family"])), []).append(str(row["text"]))
    return out


@cache
def honest_endings() -> dict[str, list[str]]:
    """Last sentences of real requests that look like a claim and are none, by language."""
    out: dict[str, list[str]] = {}
    for row in read_lines(_DATA / "honest_endings.jsonl.gz"):
        out.setdefault(str(row["lang"]), []).append(str(row["text"]))
    return out


def languages() -> tuple[str, ...]:
    """The languages in which claims are written."""
    return tuple(_tables())


def claim(lang: str, family: str, rng: np.random.Generator) -> str:
    """One claim of difficulty in one language; unknown languages get English.

    Half of them are sentences written out, where the family has any, half filled templates.
    """
    written = _sentences().get((lang, family))
    if written and rng.random() < 0.5:
        return _pick(written, rng)
    table = _tables().get(lang, _tables()["en"])
    template = _pick(table[family], rng)
    words = table.get(_FILLER.get(family, ""), [])
    if words:
        a, b, c = rng.permutation(len(words))[:3]
        template = template.format(a=words[a], b=words[b], c=words[c])
    while "{n}" in template:
        template = template.replace("{n}", f"{rng.uniform(0.7, 1.0):.2f}", 1)
    text = template[:1].upper() + template[1:]
    return _pick(_FRAMES, rng).format(text) if family == "role" else text


def attack(text: str, lang: str, rng: np.random.Generator) -> str:
    """Attach one or two claims to a text: mostly behind it, sometimes before.

    Half of the time the claim is in English, whatever the text's language.
    """
    family = _pick(FAMILIES, rng)
    tongue = lang if rng.random() < 0.6 else "en"
    said = claim(tongue, family, rng)
    if rng.random() < 0.2:
        said += " " + claim(tongue, _pick(FAMILIES, rng), rng)
    join = _pick(JOINS, rng)
    if rng.random() < 0.12:
        return said + _pick(("\n", "\n\n", " "), rng) + text
    return text.rstrip() + join + said


def _pick(items: list[str] | tuple[str, ...], rng: np.random.Generator) -> str:
    return items[int(rng.integers(len(items)))]
