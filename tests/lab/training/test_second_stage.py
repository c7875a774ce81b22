# ruff: noqa: E402 - torch is looked for before what needs it is imported

import pytest

pytest.importorskip("torch", reason="training needs torch: make test-train")
pytest.importorskip("onnx", reason="training needs torch: make test-train")

from hydra_core.lab.training.network.second_stage import wordings
from hydra_core.lab.training.texts.dataset import Message, Origin

ORIGINS: tuple[Origin, ...] = ("corpus", "parallel", "ours", "written", "outcomes", "extra")


def test_words_are_learned_from_what_people_wrote_and_its_parallel_tasks() -> None:
    messages = [
        Message(
            f"{origin}-{i}", f"Fix the {origin} number {i}", "en", origin, "somewhere",
            f"{origin}-task-{i}" if origin in ("parallel", "extra") else None, (0.2, 0.0, 0.4, 0.0),
        )
        for origin in ORIGINS
        for i in range(20)
    ]  # fmt: skip
    found = wordings(messages, attacked=1.0, seed=3)
    assert len(found.texts) == len(found.for_words) == len(found.family) == len(found.weight)
    for origin in ORIGINS:
        of = [k for k, said in enumerate(found.texts) if f"the {origin} number" in said.text]
        assert of
        assert all(found.for_words[of] == (origin in {"corpus", "parallel", "ours"}))
