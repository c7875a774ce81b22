"""Turns a unigram vocabulary into a trimmed fast tokenizer.

The pretrained table has 250,000 rows; sixteen languages and code need a small
part of them. A piece stays when the texts at hand use it, or when it is a
single character (so that any word of a covered script can still be spelled).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from hydra_core.training.network.pretrained import UnigramVocab

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
_BOS, _PAD, _EOS, _UNK = range(4)
_DROPPED = r"[\x00-\x08\x0b\x0e-\x1f\x7f\x{8f}\x{9f}]"
_SPACES = r"[\t\n\x0c\r\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"


@dataclass(frozen=True, slots=True)
class TrimmedVocab:
    """`rows[i]` is the row of the full table that becomes row i, (v,)."""

    tokenizer: Tokenizer
    rows: NDArray[np.int64]


def full_tokenizer(vocab: UnigramVocab) -> Tokenizer:
    """The untrimmed tokenizer; ids are those of the pretrained table."""
    pieces = list(zip(vocab.pieces, vocab.scores.tolist(), strict=True))
    return _assemble(pieces)


def trim(
    vocab: UnigramVocab, texts: Iterable[str], *, size: int, batch: int = 2048
) -> TrimmedVocab:
    """Keep the `size` most used pieces of `texts` and every single character.

    Args:
        vocab: the full vocabulary.
        texts: texts whose pieces are counted.
        size: rows wanted, specials included; single characters count too.
        batch: texts tokenised at once.
    """
    tokenizer = full_tokenizer(vocab)
    counts: Counter[int] = Counter()
    block: list[str] = []
    for text in texts:
        block.append(text)
        if len(block) == batch:
            _count(tokenizer, block, counts)
            block = []
    _count(tokenizer, block, counts)
    keep = _choose(vocab, counts, size)
    rows = np.array([0, 1, 2, 3, *keep], np.int64)
    pieces = [(p, 0.0) for p in SPECIALS]
    pieces += [(vocab.pieces[i], float(vocab.scores[i])) for i in keep]
    return TrimmedVocab(_assemble(pieces), rows)


def _count(tokenizer: Tokenizer, block: list[str], counts: Counter[int]) -> None:
    for encoding in tokenizer.encode_batch(block, add_special_tokens=False):
        counts.update(encoding.ids)


def _choose(vocab: UnigramVocab, counts: Counter[int], size: int) -> list[int]:
    usable = range(len(SPECIALS), len(vocab.pieces) - 1)  # the last one is <mask>
    used = {i for i in usable if counts[i]}
    # Single characters that never occurred still cover rare names and emoji.
    singles = [i for i in usable if len(vocab.pieces[i].lstrip("\u2581")) <= 1]
    ranked = sorted(used, key=lambda i: (-counts[i], i))
    keep = set(i for i in singles if counts[i] or _worth(vocab.pieces[i]))
    # Pieces come in order of their score, so the rest is filled by frequency at large.
    for i in [*ranked, *usable]:
        if len(keep) + len(SPECIALS) >= size:
            break
        keep.add(i)
    return sorted(keep)


def _worth(piece: str) -> bool:
    """Whether an unseen single character belongs to a covered script or sign."""
    code = ord(piece.lstrip("\u2581") or " ")
    ranges = ((0x20, 0x250), (0x370, 0x530), (0x600, 0x700), (0xE00, 0xE80), (0x2000, 0x2C00),
              (0x3000, 0x3100), (0x1E00, 0x1F00), (0x1F300, 0x1FB00))  # fmt: skip
    return any(a <= code < b for a, b in ranges)


def _assemble(pieces: list[tuple[str, float]]) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=_UNK, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_DROPPED), ""),
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
        replacement="\u2581", prepend_scheme="always", split=True
    )
    tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B </s>",
        special_tokens=[("<s>", _BOS), ("</s>", _EOS)],
    )
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer
