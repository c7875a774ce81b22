"""Random wordings of a message that leave its requirements as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from hydra_core.training.dataset import Message
from hydra_core.training.fit import Example
from hydra_core.training.suffixes import attack

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")
FloatPair = tuple[tuple[float, ...], float]


@dataclass(frozen=True, slots=True)
class AugmentConfig:
    """How often each change is made, as a share of the drawn texts.

    A language with more than `balance` messages is drawn less often: by the
    square root of its excess.
    """

    typos: float = 0.12
    casing: float = 0.10
    spacing: float = 0.08
    mixed: float = 0.15
    attacked: float = 0.30
    anchored: float = 0.25
    translated: float = 0.5
    balance: int = 1500


def noisy(text: str, rng: np.random.Generator, config: AugmentConfig) -> str:
    """Typos, casing and spacing as people type them; code blocks suffer too."""
    if rng.random() < config.typos:
        text = _typos(text, rng)
    if rng.random() < config.casing:
        text = text.lower() if rng.random() < 0.7 else text.upper() if len(text) < 60 else text
    if rng.random() < config.spacing:
        text = text.replace("\n", " ") if rng.random() < 0.5 else "\n" + text + "\n\n"
    return text


def _typos(text: str, rng: np.random.Generator) -> str:
    letters = list(text)
    for _ in range(max(1, min(6, len(letters) // 60))):
        i = int(rng.integers(max(1, len(letters) - 1)))
        if i + 1 >= len(letters) or not (letters[i].isalpha() and letters[i + 1].isalpha()):
            continue
        act = rng.random()
        if act < 0.4:
            letters[i], letters[i + 1] = letters[i + 1], letters[i]
        else:
            letters[i] = "" if act < 0.75 else letters[i] * 2
    return "".join(letters)


def mixed(first: str, second: str, rng: np.random.Generator) -> str:
    """The head of one wording and the tail of its translation."""
    a, b = ([p for p in _SENTENCE.split(t) if p.strip()] for t in (first, second))
    if len(a) < 2 or len(b) < 2:
        return first
    share = rng.uniform(0.3, 0.7)
    head = a[: max(1, round(len(a) * share))]
    tail = b[round(len(b) * share) :] or b[-1:]
    return " ".join([*head, *tail])


class Drawer:
    """Draws one epoch of examples: noise, translations, attacks, anchors."""

    def __init__(
        self,
        messages: Sequence[Message],
        targets: Mapping[str, FloatPair],
        config: AugmentConfig,
        *,
        seed: int = 42,
        share: float = 1.0,
    ) -> None:
        """Messages with their (target, weight) by id.

        `share` is the part of the messages without labels drawn in an epoch.
        """
        self._messages, self._targets = messages, targets
        self._config, self._seed, self._share = config, seed, share
        counts = Counter(m.lang for m in messages if m.origin == "corpus")
        self._keep = {lang: min(1.0, sqrt(config.balance / n)) for lang, n in counts.items()}
        self._wordings: dict[str, list[Message]] = {}
        for message in messages:
            if message.task:
                self._wordings.setdefault(message.task, []).append(message)

    def __call__(self, epoch: int) -> list[Example]:
        """The examples of one epoch."""
        rng = np.random.default_rng((self._seed, epoch))
        return [self._example(m, rng) for m in self._messages if rng.random() < self._chance(m)]

    def _chance(self, message: Message) -> float:
        if message.origin == "corpus":
            return self._keep[message.lang]
        return 1.0 if message.labels is not None else self._share

    def _example(self, message: Message, rng: np.random.Generator) -> Example:
        config = self._config
        target, weight = self._targets[message.id]
        text = message.text
        anchor: str | None = None
        others = self._wordings.get(message.task or "", [])
        if others and rng.random() < config.translated:
            other = others[int(rng.integers(len(others)))]
            anchor = other.text
            if rng.random() < config.mixed:
                text = mixed(text, other.text, rng)
        text = noisy(text, rng, config)
        if rng.random() < config.attacked:
            clean = text
            text = attack(clean, message.lang, rng).text
            anchor = clean if rng.random() < config.anchored else anchor
        return Example(text, target, weight, anchor)
