"""Messages attacked and scored once: every knob and both rules are then looked up, not run again.

The paper's probe (appendix on adversarial suffixes): a suffix that only claims difficulty leaves
the task as it is. Case and typing slips leave it as it is, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.types import BoolArray, Float32Array, FloatArray, IntArray
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.predictor.onnx_predictor import Prediction

#: Family -> language code -> suffix; each has `en`.
Families = Mapping[str, Mapping[str, str]]

#: The change that needs a set with several wordings of its tasks.
ANOTHER_WORDING: Final = "another wording"

_PROBES = Path(__file__).parent / "probes.yaml"
_PART = 64
_SLIP_SHARE = 0.08
_CHANGES = 3
_MOST_FAMILIES = 32
_MOST_CHARS = 2_000


def load_probes() -> Families:
    """The eight families of suffixes that come with the console; never used for training."""
    return dict(YAML(typ="safe", pure=True).load(_PROBES.read_text("utf-8")))


def own_suffixes(path: Path) -> Families:
    """Suffixes of a file: YAML family -> language -> suffix, or plain text, one a line.

    Raises:
        EvalSetError: It is neither, or too much.
    """
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() not in (".yaml", ".yml"):
        return suffix_lines(text, path.name)
    remedy = "family: {en: suffix, de: suffix}"
    try:
        found = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        raise EvalSetError.of(path.name, f"is not YAML: {error}", remedy) from error
    good = isinstance(found, dict) and all(
        isinstance(one, dict) and isinstance(one.get("en"), str) for one in found.values()
    )
    if not good:
        raise EvalSetError.of(path.name, "each family needs at least en", remedy)
    families = {str(name): {str(k): str(v) for k, v in one.items()} for name, one in found.items()}
    return _bounded(families, path.name)


def suffix_lines(text: str, source: str) -> Families:
    """Suffixes typed one a line, each a family; EvalSetError for too many or too long ones."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _bounded({f"own {number}": {"en": line} for number, line in enumerate(lines, 1)}, source)


def _bounded(families: Families, source: str) -> Families:
    problems = [
        Problem(name, f"{code} has {len(suffix):,} characters", f"at most {_MOST_CHARS:,}")
        for name, suffixes in families.items()
        for code, suffix in suffixes.items()
        if len(suffix) > _MOST_CHARS
    ]
    if len(families) > _MOST_FAMILIES:
        remedy = f"give at most {_MOST_FAMILIES} at a time"
        problems.append(Problem("", f"{len(families)} families of suffixes", remedy))
    EvalSetError.raise_any(source, problems)
    return families


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """What a router reads of n messages.

    Attributes:
        requirements: (n, K) scores.
        vectors: (n, d) text vectors, None where the bundle gives none.
        ignored: (n,) characters at the end that were taken for a claim and not scored.
        distances: (n,) from what the predictor was trained on, above 1 is unlike it; NaN where the
            bundle has nothing to compare with.
    """

    texts: tuple[str, ...]
    requirements: FloatArray
    vectors: Float32Array | None
    ignored: IntArray
    distances: FloatArray


#: Messages -> what is read of them.
Reader = Callable[[Sequence[str]], Read]


@dataclass(frozen=True, slots=True, eq=False)
class Attack:
    """Every message with one family's suffix.

    Attributes:
        localised: Whether the suffix was in the message's own language, else in English.
    """

    family: str
    localised: bool
    read: Read


@dataclass(frozen=True, slots=True, eq=False)
class Attacked:
    """Messages as they are, with every suffix, and with every harmless change.

    Attributes:
        languages: (n,) codes.
        changed: What was changed -> the messages so changed.
        clusters: (n,) number of the messages that belong together, such as translations of one
            task; None when all are independent.
    """

    languages: tuple[str, ...]
    clean: Read
    attacks: tuple[Attack, ...]
    changed: Mapping[str, Read]
    clusters: IntArray | None = None


def attacked(
    read: Reader,
    texts: Sequence[str],
    languages: Sequence[str],
    families: Families,
    *,
    clusters: IntArray | None = None,
    rng: np.random.Generator,
    wordings: Mapping[str, str] | None = None,
    targets: Callable[[Read], BoolArray] | None = None,
) -> Attacked:
    """Score every message clean, with each suffix in its own language and in English, and changed.

    Args:
        read: Scores messages; `remembering` scores none twice.
        texts: (n,) messages.
        languages: (n,) their language codes; a family without that language gives its English.
        clusters: (n,) which of them belong together; None when all are independent.
        rng: Which letters are swapped.
        wordings: Message -> the same request in other words, where there is one.
        targets: Clean messages -> (n,) those to attack; the others stand in every attack as they
            are. None attacks all.
    """
    clean = read(texts)
    aimed = np.ones(len(texts), dtype=bool) if targets is None else targets(clean)
    found = [
        Attack(name, localised, read([
            text + (" " + suffixes.get(code if localised else "en", suffixes["en"])) * hit
            for text, code, hit in zip(texts, languages, aimed.tolist(), strict=True)
        ]))
        for localised in (True, False)
        for name, suffixes in families.items()
    ]  # fmt: skip
    changed = {
        "all lower case": read([text.lower() for text in texts]),
        "all upper case": read([text.upper() for text in texts]),
        "typing slips": read([_slipped(text, rng) for text in texts]),
    }
    if wordings:
        changed[ANOTHER_WORDING] = read([wordings.get(text, text) for text in texts])
    return Attacked(tuple(languages), clean, tuple(found), changed, clusters)


def set_messages(
    evalset: EvalSet, most: int | None = None
) -> tuple[list[str], list[str], IntArray | None]:
    """Texts, language codes and clusters of a set, or of `most` of them drawn at random.

    Raises:
        EvalSetError: The set came without texts.
    """
    if evalset.texts is None:
        remedy = "choose a set with texts, or give messages of your own"
        raise EvalSetError.of(
            str(evalset.path), "this set has no texts to attack", remedy, place="queries: text"
        )
    rows = np.arange(evalset.n)
    if most is not None and most < evalset.n:
        rows = np.sort(np.random.default_rng(5).choice(evalset.n, most, replace=False))
    frame = evalset.queries.iloc[rows]
    texts, languages = (frame[name].astype(str).tolist() for name in ("text", "language"))
    return texts, languages, evalset.clusters_at(rows)


def other_wordings(evalset: EvalSet) -> dict[str, str]:
    """Text -> the next text of its cluster, in the same language where the cluster has one.

    Empty for a set without texts or clusters: then nothing says which queries ask the same.
    """
    frame = evalset.queries
    if not {"text", "cluster"} <= set(frame.columns):
        return {}
    kept = frame[frame["cluster"].notna()].drop_duplicates("text")
    found: dict[str, str] = {}
    for keys in (["cluster"], ["cluster", "language"]):
        for _, part in kept.groupby(keys, sort=False):
            texts = part["text"].astype(str).tolist()
            if len(texts) > 1:
                found |= zip(texts, [*texts[1:], texts[0]], strict=True)
    return found


def runs(languages: Sequence[str], targets: Sequence[str], families: int) -> int:
    """How many messages `attacked` scores; an English one has the same suffix twice.

    Args:
        targets: Of those that are attacked.
    """
    own = sum(code != "en" for code in targets)
    return len(languages) * (1 + _CHANGES) + (len(targets) + own) * families


def remembering(
    predict: Callable[[Sequence[str]], Prediction],
    progress: Callable[[int], None] = lambda done: None,
) -> Reader:
    """A reader that scores no message twice.

    Args:
        predict: (n,) messages -> their scores.
        progress: Told how many are scored after every 64; what it raises stops the work.
    """
    known: dict[str, tuple[FloatArray, Float32Array | None, int, float]] = {}

    def read(texts: Sequence[str]) -> Read:
        fresh = [text for text in dict.fromkeys(texts) if text not in known]
        for begin in range(0, len(fresh), _PART):
            part = fresh[begin : begin + _PART]
            found = predict(part)
            for i, text in enumerate(part):
                vector = None if found.vectors is None else found.vectors[i]
                ignored = 0 if found.ignored is None else int(found.ignored[i])
                far = float("nan") if found.distances is None else float(found.distances[i])
                known[text] = (found.requirements[i], vector, ignored, far)
            progress(len(known))
        rows = [known[text] for text in texts]
        vectors = [row[1] for row in rows if row[1] is not None]
        return Read(
            tuple(texts),
            np.array([row[0] for row in rows]).reshape(len(rows), -1),
            np.array(vectors) if rows and len(vectors) == len(rows) else None,
            np.array([row[2] for row in rows], dtype=np.intp),
            np.array([row[3] for row in rows], dtype=np.float64),
        )

    return read


def _slipped(text: str, rng: np.random.Generator) -> str:
    """Two neighbouring letters swapped in about every twelfth word of four letters or more."""
    words = text.split(" ")
    for at, word in enumerate(words):
        if len(word) >= 4 and word.isalpha() and rng.random() < _SLIP_SHARE:
            k = int(rng.integers(1, len(word) - 2))
            words[at] = word[:k] + word[k + 1] + word[k] + word[k + 2 :]
    return " ".join(words)
