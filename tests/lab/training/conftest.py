# ruff: noqa: E402 - torch is looked for before what needs it is imported
"""Tiny messages, a tiny vocabulary and a tiny model; no data beside the project is needed."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch: make test-train")

from hydra_core.lab.training.network.model import EncoderConfig, Predictor
from hydra_core.lab.training.network.pretrained import TrimmedVocab, UnigramVocab, trim
from hydra_core.lab.training.texts.dataset import Message

WORDS = ("fix", "the", "bug", "thanks", "write", "tests", "deploy", "service", "naprawić", "错误")


@pytest.fixture(scope="session")
def vocab() -> UnigramVocab:
    letters = sorted({c for w in WORDS for c in w} | set("abcdefghijklmnopqrstuvwxyz[]T1:./"))
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁"]
    pieces += ["▁" + w for w in WORDS] + letters + ["<mask>"]
    scores = np.array([0.0] * 4 + [-3.0] + [-5.0] * len(WORDS) + [-9.0] * len(letters) + [0.0])
    return UnigramVocab(tuple(pieces), scores.astype(np.float32))


@pytest.fixture(scope="session")
def trimmed(vocab: UnigramVocab) -> TrimmedVocab:
    return trim(vocab, [" ".join(WORDS)], size=60)


@pytest.fixture(scope="session")
def messages() -> list[Message]:
    rng = np.random.default_rng(0)
    out = []
    for i in range(120):
        words = " ".join(rng.choice(WORDS, 5)) + f" {rng.integers(1 << 40):x}"
        hard = 0.8 if "bug" in words else 0.0
        lang = ("en", "pl", "zh")[i % 3]
        out.append(Message(f"m{i}", words, lang, "corpus", "own", None, (hard, 0.0, hard, 0.2)))
    for task in range(6):
        for lang in ("en", "pl", "zh"):
            text = f"fix the bug {task} {lang} " + rng.choice(WORDS)
            out.append(Message(f"p{task}-{lang}", text, lang, "parallel", "parallel", f"p{task}",
                               (0.2 * (task % 4), 0.2, 0.4, 0.0)))  # fmt: skip
    return out


@pytest.fixture
def tiny(trimmed: TrimmedVocab) -> Predictor:
    import torch

    torch.manual_seed(0)
    return Predictor(
        EncoderConfig(
            vocab=len(trimmed.rows), width=32, layers=2, heads=2, intermediate=48, max_tokens=32
        )
    )
