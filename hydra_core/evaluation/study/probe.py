"""Claims of difficulty, case and typing slips: what they do to a router's choices.

The paper's probe (appendix on adversarial suffixes): messages that route to a cheap model get a
suffix that leaves the task as it is; a success is a route to one of the two dearest models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hydra_core.errors import EvalSetError, Problem
from hydra_core.evaluation.significance import Interval, wilson
from hydra_core.predictor.checks.robustness import (
    AttackRow,
    Probes,
    Score,
    load_probes,
    suffix_attacks,
)
from hydra_core.routing.matcher import choose, shortfall
from hydra_core.types import FloatArray, IntArray, Pool

__all__ = ["FlipRow", "ProbeReport", "own_suffixes", "probe", "remembering"]

_SLIP_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class FlipRow:
    """A harmless change of the text, and the share of messages whose model it changed."""

    change: str
    n: int
    rate: Interval


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What a probe found at one tau: a row per suffix family and language group, and flips."""

    tau: float
    n: int
    cheap: int
    attacks: tuple[AttackRow, ...]
    flips: tuple[FlipRow, ...]

    @property
    def worst(self) -> AttackRow:
        """The family over all languages, in either wording, that succeeds most often."""
        whole = [row for row in self.attacks if row.group == "all" and row.family != "all"]
        return max(whole, key=lambda row: np.nan_to_num(row.rate))


def probe(
    score: Score,
    pool: Pool,
    tau: float,
    texts: Sequence[str],
    languages: Sequence[str],
    *,
    own: Probes | None = None,
    rng: np.random.Generator,
) -> ProbeReport:
    """Attack every cheaply routed message with every family, then slip and change the case.

    Args:
        score: (n,) messages -> (n, K); `remembering` scores none twice.
        own: Further suffix families, family -> language -> suffix, each with `en`.
        rng: Which letters are swapped.
    """

    def route(requirements: FloatArray) -> IntArray:
        return choose(shortfall(requirements, pool.capabilities, pool.weights), pool.cost, tau)

    families = {**load_probes(), **(own or {})}
    attacks = [
        row
        for localised in (True, False)
        for row in suffix_attacks(
            score, route, pool.cost, texts, languages, probes=families, localised=localised
        )
    ]
    clean = route(score(texts))
    changed = {
        "all lower case": [text.lower() for text in texts],
        "all upper case": [text.upper() for text in texts],
        "typing slips": [_slipped(text, rng) for text in texts],
    }
    flips = tuple(_flips(name, clean, route(score(new))) for name, new in changed.items())
    return ProbeReport(tau, len(texts), attacks[0].n if attacks else 0, tuple(attacks), flips)


def _flips(change: str, before: IntArray, after: IntArray) -> FlipRow:
    moved = int((before != after).sum())
    return FlipRow(change, len(before), wilson(moved, len(before)))


def _slipped(text: str, rng: np.random.Generator) -> str:
    """Two neighbouring letters swapped in about every twelfth word of four letters or more."""
    words = text.split(" ")
    for at, word in enumerate(words):
        if len(word) >= 4 and word.isalpha() and rng.random() < _SLIP_SHARE:
            k = int(rng.integers(1, len(word) - 2))
            words[at] = word[:k] + word[k + 1] + word[k] + word[k + 2 :]
    return " ".join(words)


def remembering(
    predict: Callable[[Sequence[str]], FloatArray],
    progress: Callable[[int, int], None] = lambda done, total: None,
    expected: int = 0,
) -> Score:
    """Scores of a predictor; a message seen before is not scored again.

    Args:
        predict: (n,) messages -> (n, K).
        progress: Told (scored, expected) after every 256 messages.
        expected: Messages that will be scored in all, about.
    """
    known: dict[str, FloatArray] = {}

    def score(texts: Sequence[str]) -> FloatArray:
        fresh = [text for text in dict.fromkeys(texts) if text not in known]
        for begin in range(0, len(fresh), 256):
            part = fresh[begin : begin + 256]
            known.update(zip(part, predict(part), strict=True))
            progress(len(known), max(expected, len(known)))
        return np.array([known[text] for text in texts]).reshape(len(texts), -1)

    return score


def own_suffixes(path: Path) -> Mapping[str, Mapping[str, str]]:
    """An operator's suffixes: YAML family -> language -> suffix, or plain text, one a line.

    Raises:
        EvalSetError: It is neither.
    """
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() not in (".yaml", ".yml"):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return {f"own {number}": {"en": line} for number, line in enumerate(lines, 1)}
    remedy = "family: {en: suffix, de: suffix}"
    try:
        found = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        raise EvalSetError(path.name, [Problem("", f"is not YAML: {error}", remedy)]) from error
    good = isinstance(found, dict) and all(
        isinstance(one, dict) and isinstance(one.get("en"), str) for one in found.values()
    )
    if not good:
        raise EvalSetError(path.name, [Problem("", "each family needs at least en", remedy)])
    return {str(name): {str(k): str(v) for k, v in one.items()} for name, one in found.items()}
