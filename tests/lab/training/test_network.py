# ruff: noqa: E402 - torch is looked for before what needs it is imported

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: make test-train")

from hydra_core.lab.training.network.fit import (
    FitConfig,
    Fitter,
    Team,
    rate_at,
    squared_spread,
    together,
    weighted_bce,
)
from hydra_core.lab.training.network.model import EncoderConfig, Predictor, load_weights, predict
from hydra_core.lab.training.network.pretrained import (
    PretrainedError,
    TrimmedVocab,
    dequantise_q4,
    read_pack,
)
from hydra_core.lab.training.texts.augment import Example, Family
from hydra_core.lab.training.texts.dataset import Message
from hydra_core.lab.training.texts.encode import buckets
from hydra_core.predictor.tokens import shorten

CONFIG = FitConfig(
    epochs=3, batch=16, learning_rate=3e-3, head_learning_rate=3e-2, max_tokens=32,
    precision="fp32", save_every=3, patience=9, freeze_table=False,
)  # fmt: skip


def examples(messages: Sequence[Message]) -> list[Family]:
    return [[Example(m.text, m.labels or ())] for m in messages]


def judge(_: Predictor) -> dict[str, float]:
    return {"score": 0.0}


def test_training_lowers_the_loss(
    tiny: Predictor, trimmed: TrimmedVocab, messages: Sequence[Message], tmp_path: Path
) -> None:
    truth = np.array([m.labels for m in messages])

    def error(model: Predictor) -> float:
        scores = predict(model, trimmed.tokenizer, [m.text for m in messages], max_tokens=32)
        return float(np.square(scores - truth).mean())

    before = error(tiny)
    Fitter(tiny, trimmed.tokenizer, CONFIG, tmp_path).run(
        lambda _: examples(messages), lambda model: {"score": 1 - error(model)}
    )
    assert error(tiny) < 0.8 * before


def test_a_stopped_run_goes_on_where_it_was(
    tiny: Predictor, trimmed: TrimmedVocab, messages: Sequence[Message], tmp_path: Path
) -> None:
    short = replace(CONFIG, epochs=1)
    first = Fitter(tiny, trimmed.tokenizer, short, tmp_path).run(
        lambda _: examples(messages), judge
    )
    again = Fitter(tiny, trimmed.tokenizer, CONFIG, tmp_path).run(
        lambda _: examples(messages), judge
    )
    assert again.steps == 3 * first.steps


def test_the_rate_rises_then_falls_to_zero() -> None:
    rates = [rate_at(i, 100, 0.1) for i in range(101)]
    assert rates[9] == 1.0
    assert rates[0] < rates[5] < rates[9] > rates[50] > rates[99]
    assert rates[100] == pytest.approx(0.0, abs=1e-9)


def test_the_loss_is_the_papers() -> None:
    logits = torch.tensor([[0.0, 2.0]])
    target = torch.tensor([[1.0, 0.0]])
    alpha = torch.tensor([3.0, 1.0])
    p = torch.sigmoid(logits)
    by_hand = -(3 * torch.log(p[0, 0]) + torch.log(1 - p[0, 1])) / 4
    assert weighted_bce(logits, target, alpha, torch.ones(1)) == pytest.approx(by_hand.item())


@pytest.mark.parametrize("kind", ["bert", "modernbert"])
@pytest.mark.parametrize("count", [1, 3])
def test_heads_follow_the_dimensions(kind: str, count: int) -> None:
    config = EncoderConfig(
        kind=kind, vocab=50, width=32, layers=1, heads=2, intermediate=48,
        dimensions=tuple("abc"[:count]),
    )  # fmt: skip
    ids = torch.randint(4, 50, (2, 7))
    scores = Predictor(config).eval()(ids, torch.ones_like(ids))
    assert scores.shape == (2, count)
    assert bool(((scores > 0) & (scores < 1)).all())


def test_padding_does_not_change_a_score(tiny: Predictor) -> None:
    tiny.eval()
    ids = torch.randint(4, 40, (1, 9))
    padded = torch.cat([ids, torch.ones((1, 5), dtype=torch.long)], 1)
    mask = torch.cat([torch.ones_like(ids), torch.zeros((1, 5), dtype=torch.long)], 1)
    assert torch.allclose(tiny(ids, torch.ones_like(ids)), tiny(padded, mask), atol=1e-5)


def test_long_rows_keep_head_and_tail() -> None:
    ids = list(range(100))
    assert shorten(ids, 100) == ids
    assert len(shorten(ids, 40)) == 40
    assert shorten(ids, 40)[0] == 0
    assert shorten(ids, 40)[-1] == 99


def test_buckets_hold_every_row_once() -> None:
    blocks = buckets([5, 900, 7, 300, 5, 6], 2, tokens=1000)
    assert sorted(i for b in blocks for i in b) == list(range(6))
    assert max(len(b) for b in blocks) <= 2


def test_four_bit_blocks() -> None:
    scale = np.array([0.5], "<f2").tobytes()
    weights = dequantise_q4(scale + bytes([0x80] + [0x88] * 15))
    assert weights.shape == (32,)
    assert weights[0] == -4.0
    assert weights[16] == 0.0


def test_a_foreign_pack_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pack.bin"
    path.write_bytes(b"nope")
    with pytest.raises(PretrainedError, match="expected"):
        read_pack(path)


def test_the_spread_of_a_family_is_about_its_own_mean() -> None:
    scores = torch.tensor([[0.1], [0.3], [0.9], [0.5]])
    owner = torch.tensor([0, 0, 1, 2])
    assert squared_spread(scores, owner, 3).item() == pytest.approx(0.02)


def test_the_parts_of_a_team_are_even_and_together_the_whole() -> None:
    families = [[Example("x" * n, ())] * (1 + n % 3) for n in range(1, 40)]
    parts = []
    for rank in (0, 1):
        team = Team()
        team.rank, team.size = rank, 2
        parts.append(team.part(families))
    sizes = [sum(len(row.text) for family in part for row in family) for part in parts]
    assert sorted(map(len, parts[0] + parts[1])) == sorted(map(len, families))
    assert abs(sizes[0] - sizes[1]) < 0.05 * sum(sizes)


def two_steps(team: Team, folder: Path, texts: Sequence[str], trimmed: TrimmedVocab) -> None:
    torch.manual_seed(0)
    model = Predictor(
        EncoderConfig(
            vocab=len(trimmed.rows), width=32, layers=2, heads=2, intermediate=48,
            max_tokens=32, dropout=0.0,
        )
    )  # fmt: skip
    families = [[Example(text, (0.2 * (i % 5),) * 4)] for i, text in enumerate(texts)]
    config = replace(CONFIG, steps=2, consistency=1.0)
    Fitter(model, trimmed.tokenizer, config, folder, team).run(lambda _: families, judge)


def test_two_processes_learn_what_one_learns(
    trimmed: TrimmedVocab, messages: Sequence[Message], tmp_path: Path
) -> None:
    texts = [m.text for m in messages[:64]]
    two_steps(Team(), tmp_path / "one", texts, trimmed)
    job = partial(two_steps, folder=tmp_path / "two", texts=texts, trimmed=trimmed)
    together(2, job)
    one, two = (load_weights(tmp_path / name / "best.pt") for name in ("one", "two"))
    assert all(torch.allclose(one[key], two[key], atol=1e-4) for key in one)
