# ruff: noqa: E402 - torch is looked for before what needs it is imported

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="training needs torch: make test-train")

from hydra_core.lab.training.texts.dataset import (
    DataPaths,
    DatasetError,
    Message,
    SplitPlan,
    near_duplicates,
    read_lines,
    read_messages,
    split,
)

PLAN = SplitPlan(test_per_language=8, validation_per_language=4, test_tasks=1, validation_tasks=1)


def test_wordings_of_a_task_never_straddle_splits(messages: Sequence[Message]) -> None:
    parts = split(messages, PLAN)
    tasks = [
        {m.task for m in part if m.task} for part in (parts.train, parts.validation, parts.test)
    ]
    assert tasks[1]
    assert tasks[2]
    assert tasks[0].isdisjoint(tasks[1] | tasks[2])
    assert tasks[1].isdisjoint(tasks[2])


def test_splits_are_the_same_for_the_same_seed_and_lose_nothing(
    messages: Sequence[Message],
) -> None:
    first, second = split(messages, PLAN), split(messages, PLAN)
    assert first == second
    assert len(first.train) + len(first.validation) + len(first.test) == len(messages)
    assert first.test != split(messages, replace(PLAN, seed=1)).test


def test_near_duplicates_are_found_and_others_are_not() -> None:
    text = (
        "Please add retry logic with exponential backoff to the upload worker, and a test for it."
    )
    other = "Why does the date picker show the wrong month when the locale is set to Portuguese?"
    assert near_duplicates([text, other, text.upper() + "!"]) == [(0, 2)]


def test_an_unlabelled_copy_of_a_held_out_message_is_dropped(messages: Sequence[Message]) -> None:
    held = split(messages, PLAN).test[0]
    copy = replace(held, id="copy", labels=None, task=None, origin="unlabelled")
    fresh = replace(copy, id="fresh", text="something that nobody has ever typed before, really")
    assert [m.id for m in split([*messages, copy, fresh], PLAN).unlabelled] == ["fresh"]


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 1}\n{"id": \n')
    with pytest.raises(DatasetError, match="line 2"):
        read_lines(path)


def test_tasks_added_later_do_not_move_what_is_held_out(messages: Sequence[Message]) -> None:
    extra = [
        replace(messages[0], id=f"x{i}", task=f"x{i}", origin="extra", text=f"brand new {i} " * 9)
        for i in range(20)
    ]
    before, after = split(messages, PLAN), split([*messages, *extra], PLAN)
    assert before.test == after.test
    assert before.validation == after.validation


def test_tasks_held_out_by_their_file_are_never_trained_on(messages: Sequence[Message]) -> None:
    held = [
        replace(messages[0], id=f"h{i}", task=f"h{i}", origin="held", text=f"held out {i} " * 9)
        for i in range(4)
    ]
    copy = replace(held[0], id="copy", task="other", origin="extra")
    before, after = split(messages, PLAN), split([*messages, *held, copy], PLAN)
    assert after.tasks == tuple(held)
    assert (before.train, before.validation, before.test) == (
        after.train, after.validation, after.test,
    )  # fmt: skip


def test_messages_judged_by_ourselves_are_trained_on_and_never_held_out(
    messages: Sequence[Message],
) -> None:
    ours = [
        replace(messages[0], id=f"u{i}", origin="ours", text=f"judged by us {i} " * 9)
        for i in range(20)
    ]
    copy = replace(split(messages, PLAN).test[0], id="copy", task=None, origin="ours")
    before, after = split(messages, PLAN), split([*messages, *ours, copy], PLAN)
    assert (before.test, before.validation) == (after.test, after.validation)
    assert {m.id for m in ours} <= {m.id for m in after.train}
    assert "copy" not in {m.id for m in after.train}


def test_messages_we_wrote_are_trained_on_unless_their_file_holds_them_out(
    messages: Sequence[Message],
) -> None:
    written = [
        replace(messages[0], id=f"w{i}", origin="written", text=f"written by us {i} " * 9)
        for i in range(6)
    ]
    fresh = [replace(written[0], id="f", origin="fresh", text="and this one nobody trains on " * 3)]
    copy = replace(fresh[0], id="copy", origin="written")
    parts = split([*messages, *written, *fresh, copy], PLAN)
    assert parts.fresh == tuple(fresh)
    assert {m.id for m in parts.train if m.origin == "written"} == {m.id for m in written}


def test_our_labels_join_the_messages_without_any(tmp_path: Path) -> None:
    def write(name: str, *lines: str) -> Path:
        (tmp_path / name).write_text("\n".join(lines))
        return tmp_path / name

    both = '"lang": "en", "source": "s"}'
    label = '"reasoning": 0.4, "debugging": 0.0}'
    paths = DataPaths(
        write("q", '{"id": "q1", "text": "a", ' + both), write("l", '{"id": "q1", ' + label),
        write("p"), write("u", *(f'{{"id": "u{i}", "text": "b{i}", {both}' for i in (1, 2))),
        judged=write("j", '{"id": "u2", ' + label),
    )  # fmt: skip
    found = {m.id: (m.origin, m.labels) for m in read_messages(paths, ("reasoning", "debugging"))}
    assert found == {
        "q1": ("corpus", (0.4, 0.0)), "u1": ("unlabelled", None), "u2": ("ours", (0.4, 0.0)),
    }  # fmt: skip


def test_a_conversation_is_read_and_encoded_as_it_will_be_scored(tmp_path):
    """The context of `routing/conversations/context.py`, for models that read it alone."""
    from hydra_core.lab.training.texts.encode import token_ids
    from hydra_core.predictor.onnx_predictor import Predictor
    from hydra_core.routing.conversations.context import score_messages
    from tests.predictor.tiny_bundle import make_bundle, tokenizer

    said = [
        {"role": "user", "content": "write a poem"},
        {"role": "assistant", "content": "Roses"},
        {"role": "user", "content": "fix bug"},
    ]
    row = {"id": "a", "lang": "en", "messages": said}
    paths = DataPaths(tmp_path / "q.jsonl", tmp_path / "l.jsonl", tmp_path / "p.jsonl")
    paths.corpus.write_text(json.dumps(row))
    paths.labels.write_text(json.dumps({"id": "a", "reasoning": 0.5}))
    paths.parallel.write_text("")
    (message,) = read_messages(paths, ("reasoning",), conversation=1)
    assert message.asked == ("fix bug", 2, "U: write a poem\nA: Roses\n")
    (alone,) = read_messages(paths, ("reasoning",))
    assert alone.asked == ("fix bug", 2, "")
    bundle = make_bundle(tmp_path / "bundle", conversation=1, max_tokens=256)
    (ids,) = token_ids(tokenizer(), [message.asked], bundle.max_tokens)
    assert len(ids) == score_messages(Predictor(bundle), said).tokens[0]
    assert len(ids) > len(token_ids(tokenizer(), [alone.asked], 256)[0])
