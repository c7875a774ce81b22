"""Random wordings of a message that leave its requirements as they are, claims among them.

Appended claims of difficulty are drawn from our own templates and sentences. Five families follow
the paper's appendix on adversarial suffixes; three more are kept out of training, for tests on
claims nobody thought of.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
from ruamel.yaml import YAML

from hydra_core.lab.training.texts.dataset import Message, read_lines
from hydra_core.routing.conversations.context import LastTurn

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
    return YAML(typ="safe").load((_DATA / "suffixes.yaml").read_text("utf-8"))


@cache
def _sentences() -> dict[tuple[str, str], list[str]]:
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


@dataclass(frozen=True, slots=True)
class Example:
    """One training text: (K,) targets in [0, 1] and its weight in the loss."""

    text: str
    target: tuple[float, ...]
    weight: float = 1.0
    turn: int = 1
    context: str = ""

    @property
    def asked(self) -> LastTurn:
        """What the model sees of it."""
        return LastTurn(self.text, self.turn, self.context)


#: Wordings of one request, mostly one: translations, or with and without a claim of difficulty.
Family = list[Example]


_WIDE = str.maketrans(",?!:;", "，？！：；")
_NARROW = re.compile(r"(?<=[぀-鿿])[,?!:;] ?")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")
FloatPair = tuple[tuple[float, ...], float]


@dataclass(frozen=True, slots=True)
class AugmentConfig:
    """How often each change is made, as a share of the drawn texts.

    A language with more than `balance` messages is drawn less often: by the
    square root of its excess. Of a parallel task, `wordings` languages are
    drawn at a time, `times` times an epoch (0.5: every other epoch, by chance).
    """

    typos: float = 0.12
    casing: float = 0.10
    spacing: float = 0.08
    wide: float = 0.6
    mixed: float = 0.15
    attacked: float = 0.30
    wordings: int = 6
    times: float = 1.0
    balance: int = 1500


def noisy(text: str, rng: np.random.Generator, config: AugmentConfig) -> str:
    """Typos, casing and spacing as people type them; code blocks suffer too."""
    if rng.random() < config.typos:
        text = _typos(text, rng)
    if rng.random() < config.casing:
        text = text.lower() if rng.random() < 0.7 else text.upper() if len(text) < 60 else text
    if rng.random() < config.spacing:
        text = text.replace("\n", " ") if rng.random() < 0.5 else "\n" + text + "\n\n"
    if rng.random() < config.wide:
        text = _NARROW.sub(lambda sign: sign[0].strip().translate(_WIDE), text)
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
    """Draws one epoch of families: noise, translations, attacks."""

    def __init__(
        self,
        messages: Sequence[Message],
        targets: Mapping[str, FloatPair],
        config: AugmentConfig,
        *,
        seed: int = 42,
        share: float = 1.0,
    ) -> None:
        """Targets and weights are by id; `share` of the unlabelled messages is drawn an epoch."""
        self._targets, self._config, self._seed, self._share = targets, config, seed, share
        self._single = [m for m in messages if not m.task]
        self._tasks: dict[str, list[Message]] = {}
        for message in messages:
            if message.task:
                self._tasks.setdefault(message.task, []).append(message)
        counts = Counter(m.lang for m in self._single if m.labels is not None)
        self._keep = {lang: min(1.0, sqrt(config.balance / n)) for lang, n in counts.items()}

    def __call__(self, epoch: int) -> list[Family]:
        rng = np.random.default_rng((self._seed, epoch))
        chosen = [
            m
            for m in self._single
            if rng.random() < (self._share if m.labels is None else self._keep[m.lang])
        ]
        drawn = [self._alone(m, rng) for m in chosen]
        whole, rest = divmod(self._config.times, 1)
        for wordings in self._tasks.values():
            often = int(whole) + int(rest > 0 and rng.random() < rest)
            drawn += [self._together(wordings, rng) for _ in range(often)]
        return drawn

    def _alone(self, message: Message, rng: np.random.Generator) -> Family:
        text = noisy(message.text, rng, self._config)
        family = [self._example(message, text)]
        if rng.random() < self._config.attacked:
            family.append(self._example(message, attack(text, message.lang, rng)))
        return family

    def _together(self, wordings: Sequence[Message], rng: np.random.Generator) -> Family:
        config = self._config
        family: Family = []
        for i in rng.permutation(len(wordings))[: config.wordings]:
            message = wordings[i]
            text = message.text
            if rng.random() < config.mixed:
                text = mixed(text, wordings[int(rng.integers(len(wordings)))].text, rng)
            text = noisy(text, rng, config)
            if rng.random() < config.attacked / 2:
                text = attack(text, message.lang, rng)
            family.append(self._example(message, text))
        return family

    def _example(self, message: Message, text: str) -> Example:
        target, weight = self._targets[message.id]
        return Example(text, target, weight, message.turn, message.context)
