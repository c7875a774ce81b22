"""The data that come with the training code are whole."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hydra_core.base.types import DIMENSIONS
from hydra_core.lab.training.texts.dataset import read_lines
from hydra_core.predictor.languages import LANGUAGES

ROOT = Path(__file__).parents[2]
DATA = ROOT / "hydra_core" / "lab" / "training" / "data"
FILES = sorted([*DATA.glob("tasks_*"), DATA / "held_tasks.jsonl.gz"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_task_has_one_label_in_english_and_at_least_seven_other_languages(
    path: Path,
) -> None:
    tasks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in read_lines(path):
        assert str(row["text"]).strip()
        tasks[str(row["task"])].append(row)
    for wordings in tasks.values():
        languages = [row["lang"] for row in wordings]
        assert len(set(languages)) == len(languages) >= 8
        assert "en" in languages
        assert set(languages) <= set(LANGUAGES)
        labels = {tuple(row[name] for name in DIMENSIONS) for row in wordings}
        assert len(labels) == 1
        assert all(0 <= value <= 0.8 for value in labels.pop())


def test_no_task_stands_in_two_files_and_no_held_out_or_demo_text_is_trained_on() -> None:
    ids = [{row["task"] for row in read_lines(path)} for path in FILES]
    assert sum(map(len, ids)) == len(set().union(*ids))
    held = {row["text"] for row in read_lines(DATA / "held_tasks.jsonl.gz")}
    demo = pd.read_parquet(ROOT / "sample_data" / "console_demo" / "queries.parquet")
    trained = {row["text"] for path in FILES if "held" not in path.name for row in read_lines(path)}
    assert trained.isdisjoint(held)
    assert trained.isdisjoint({text for text in demo["text"] if len(text) > 12})


WRITTEN = sorted([*DATA.glob("written_*"), DATA / "fresh.jsonl.gz"])


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_messages_we_wrote_cover_every_language_and_are_labelled_on_the_scale(path: Path) -> None:
    rows = read_lines(path)
    assert {row["lang"] for row in rows} == set(LANGUAGES)
    for row in rows:
        assert str(row["text"]).strip()
        for name in DIMENSIONS:
            value = row[name]
            assert isinstance(value, float)
            assert 0 <= value <= 0.8


def test_no_message_we_wrote_stands_twice_and_none_that_is_held_out_is_trained_on() -> None:
    ids = [row["id"] for path in WRITTEN for row in read_lines(path)]
    assert len(ids) == len(set(ids))
    fresh = {(row["lang"], row["text"]) for row in read_lines(DATA / "fresh.jsonl.gz")}
    for path in DATA.glob("written_*"):
        assert fresh.isdisjoint((row["lang"], row["text"]) for row in read_lines(path))


def test_the_help_of_training_needs_no_torch() -> None:
    hide = "import runpy, sys; sys.modules['torch'] = None; sys.argv = ['training', '--help']; "
    run = "runpy.run_module('hydra_core.lab.training', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", hide + run], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ablations" in done.stdout
