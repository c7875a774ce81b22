# ruff: noqa: E402 - torch is looked for before what needs it is imported

import re
from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch: make test-train")

from hydra_core.lab.training.texts.augment import (
    FAMILIES,
    UNSEEN,
    AugmentConfig,
    Drawer,
    attack,
    claim,
    honest_endings,
    languages,
    mixed,
    noisy,
)
from hydra_core.lab.training.texts.dataset import Message


def test_every_family_speaks_every_language_and_fills_its_blanks() -> None:
    rng = np.random.default_rng(0)
    assert len(languages()) == 16
    for lang in languages():
        for family in (*FAMILIES, *UNSEEN):
            said = {claim(lang, family, rng) for _ in range(12)}
            assert len(said) >= 2
            assert not any(re.search(r"\{[abcn]\}", text) for text in said)


def test_honest_endings_are_there_in_every_language_and_are_no_claims() -> None:
    endings = honest_endings()
    assert set(endings) == set(languages())
    rng = np.random.default_rng(0)
    said = {claim(lang, family, rng) for lang in endings for family in FAMILIES for _ in range(99)}
    assert not any(text in said for texts in endings.values() for text in texts)


def test_an_attack_keeps_the_message() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert "rename this variable" in attack("rename this variable", "pl", rng)


def test_mixing_takes_a_head_and_a_tail() -> None:
    rng = np.random.default_rng(0)
    text = mixed("One. Two. Three. Four.", "Eins. Zwei. Drei. Vier.", rng)
    assert text.startswith("One.")
    assert text.endswith("Vier.")


def test_wide_signs_follow_wide_letters_only() -> None:
    config = AugmentConfig(typos=0, casing=0, spacing=0, wide=1)
    text = noisy("好的, 谢谢! f(a, b)", np.random.default_rng(0), config)
    assert text == "好的，谢谢！f(a, b)"


def test_an_epoch_is_reproducible_and_epochs_differ(messages: Sequence[Message]) -> None:
    targets = {m.id: (m.labels or (), 1.0) for m in messages}
    draw = Drawer(messages, targets, AugmentConfig())
    assert draw(0) == draw(0)
    assert draw(0) != draw(1)


def test_a_large_language_is_drawn_less_often(messages: Sequence[Message]) -> None:
    targets = {m.id: (m.labels or (), 1.0) for m in messages}
    few = Drawer(messages, targets, AugmentConfig(balance=10, attacked=0))(0)
    assert sum(len(family) for family in few) < len(messages)


def test_half_of_the_tasks_come_in_an_epoch_where_that_is_asked_for(
    messages: Sequence[Message],
) -> None:
    targets = {m.id: (m.labels or (), 1.0) for m in messages}
    tasks = [m for m in messages if m.task]

    def drawn(times: float) -> list[int]:
        draw = Drawer(tasks, targets, AugmentConfig(times=times))
        return [len(draw(epoch)) for epoch in range(40)]

    assert set(drawn(2)) == {12}
    assert 2 < np.mean(drawn(0.5)) < 4


def test_wordings_of_a_task_come_together_and_an_attack_beside_its_clean_text(
    messages: Sequence[Message],
) -> None:
    targets = {m.id: (m.labels or (), 1.0) for m in messages}
    families = Drawer(messages, targets, AugmentConfig(attacked=1.0, wordings=3, balance=10**6))(0)
    single = sum(m.task is None for m in messages)
    assert sorted(len(family) for family in families) == [2] * single + [3] * 6
    for family in families:
        assert len({example.target for example in family}) == 1
        if len(family) == 2:
            assert family[0].text.rstrip() in family[1].text
