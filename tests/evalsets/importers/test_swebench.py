"""Import of leaderboard runs: joined by instance, gaps counted, broken runs refused by name."""

import json
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.assemble import NO_TEXTS
from hydra_core.evalsets.importers.swebench import list_runs, read_swebench

SHARED = Path(__file__).parents[4] / "shared" / "data" / "replay"
BOARD = SHARED / "swebench-verified-bash-only" / "data" / "leaderboards.json"
PROBLEMS = SHARED / "swebench-verified-problems" / "data" / "swebench_verified.jsonl"


def details(**changes):
    """Four instances, two resolved."""
    found = {
        f"django__django-{i}": {"resolved": i < 2, "cost": 0.1 * (i + 1), "api_calls": 5}
        for i in range(4)
    }
    return {**found, **changes}


def run(folder, found, resolved=50.0):
    return {
        "name": folder.upper(),
        "folder": folder,
        "resolved": resolved,
        "per_instance_details": found,
    }


def files(folder, *runs, board="bash-only", statements=None):
    """A leaderboard file with one board, and problem statements for the four instances."""
    leaderboards = folder / "leaderboards.json"
    leaderboards.write_text(json.dumps({"leaderboards": [{"name": board, "results": list(runs)}]}))
    problems = folder / "problems.jsonl"
    rows = statements or {f"django__django-{i}": f"Issue {i}\nfails" for i in range(4)}
    problems.write_text(
        "".join(
            json.dumps({"instance_id": k, "repo": "django/django", "problem_statement": v}) + "\n"
            for k, v in rows.items()
        )
    )
    return leaderboards, problems


def test_runs_are_joined_with_their_texts(tmp_path):
    boards, problems = files(tmp_path, run("r1", details()), run("r2", details()))
    draft = read_swebench(boards, problems, {"small": "r1", "big": "r2"})
    argv = ["import", "swebench", str(boards), "--problems", str(problems), "--model", "small=r1"]
    assert main([*argv, "--model", "big=r2", "--out", str(tmp_path / "set")]) == 0
    report, found = draft.report, load_evalset(tmp_path / "set")
    assert (report.kept, report.dropped, found.models) == (4, (), ("small", "big"))
    assert found.query_ids == tuple(f"django__django-{i}" for i in range(4))
    assert found.resolved == {"small": 2, "big": 2}
    np.testing.assert_allclose(found.cost_usd[:, 0], [0.1, 0.2, 0.3, 0.4])
    assert set(found.queries["group"]) == {"django/django"}
    assert "small = r1" in found.origin


def test_without_problem_statements_the_set_has_no_texts(tmp_path):
    leaderboards, _ = files(tmp_path, run("a", details()))
    draft = read_swebench(leaderboards, None, {"m": "a"})
    assert "text" not in draft.queries.columns
    assert set(draft.queries["group"]) == {"django__django"}
    assert NO_TEXTS in draft.report.warnings


def test_what_has_no_text_or_no_outcome_is_dropped_and_counted(tmp_path):
    partial = details()
    del partial["django__django-3"]
    boards, problems = files(
        tmp_path,
        run("whole", details()),
        run("partial", partial, resolved=66.7),
        statements={"django__django-0": "x", "django__django-1": " ", "django__django-3": "y"},
    )
    draft = read_swebench(boards, problems, {"a": "whole", "b": "partial"})
    assert list(draft.queries["query_id"]) == ["django__django-0"]
    dropped = {entry.reason: (entry.count, entry.examples) for entry in draft.report.dropped}
    assert dropped == {
        "instance with no problem text": (2, ("django__django-1", "django__django-2")),
        "instance with not in run partial": (1, ("django__django-3",)),
    }


def test_a_missing_cost_and_a_cost_of_zero_are_not_known(tmp_path):
    odd = details(
        **{
            "django__django-0": {"resolved": True, "cost": None},
            "django__django-1": {"resolved": True, "cost": 0},
        }
    )
    draft = read_swebench(*files(tmp_path, run("r", odd)), {"m": "r"})
    assert draft.report.missing == {"m": (0, 2)}
    assert np.isnan(draft.cost_usd[:2]).all()
    assert any(text.startswith("1 outcomes have a cost of 0") for text in draft.report.warnings)


@pytest.mark.parametrize(
    ("found", "resolved", "message"),
    [
        (None, 50.0, "has no per-instance details"),
        ({}, 50.0, "has no per-instance details"),
        (details(), 92.8, "50.0 % resolved, the leaderboard says 92.8 %"),
        (details(x={"resolved": "yes", "cost": 1}), 50.0, "`resolved` is not true or false"),
        (details(x=None), 50.0, "`resolved` is not true or false"),
        (details(x={"resolved": False, "cost": -1}), 50.0, "`cost` is not a number >= 0"),
        (details(x={"resolved": False, "cost": 10**400}), 50.0, "`cost` is not a number >= 0"),
        (details(x={"resolved": False, "cost": "free"}), 50.0, "`cost` is not a number >= 0"),
    ],
)
def test_a_broken_run_is_refused_by_name(tmp_path, found, resolved, message):
    boards, problems = files(tmp_path, run("bad", found, resolved), run("good", details()))
    with pytest.raises(EvalSetError) as caught:
        read_swebench(boards, problems, {"m": "bad", "n": "good"})
    assert "m=bad" in str(caught.value)
    assert message in str(caught.value)


def test_every_problem_with_the_models_is_said_at_once(tmp_path):
    boards, problems = files(tmp_path, run("run-one", details()))
    with pytest.raises(EvalSetError) as caught:
        read_swebench(boards, problems, {"<b>": "run-one", "m": "run-two"})
    assert "contains less-than sign" in str(caught.value)
    assert "runs like it: run-one" in str(caught.value)


def test_a_run_on_two_boards_needs_the_board(tmp_path):
    boards, problems = files(tmp_path, run("r", details()))
    content = json.loads(boards.read_text())
    content["leaderboards"].append({"name": "Other", "results": [run("r", details())]})
    boards.write_text(json.dumps(content))
    with pytest.raises(EvalSetError, match="--board"):
        read_swebench(boards, problems, {"m": "r"})
    assert read_swebench(boards, problems, {"m": "r"}, board="Other").report.kept == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"leaderboards": [{"name": "x", "resul', "is not valid JSON"),
        ('{"leaderboards": []}', 'has no "leaderboards" list'),
        ("[]", 'has no "leaderboards" list'),
        ('{"leaderboards": [{"name": "x"}]}', 'has no "results" list'),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        ("[" * 100_000, "is not valid JSON"),
    ],
)
def test_a_damaged_leaderboard_says_why(tmp_path, text, message):
    (tmp_path / "leaderboards.json").write_text(text)
    with pytest.raises(EvalSetError) as caught:
        list_runs(tmp_path / "leaderboards.json")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"id": "x", "text": "y"}\n', "instance_id: the column is missing"),
        ('{"instance_id": "x", "problem_statement": "a"}\n' * 2, "instance_id occurs before"),
        ('{"instance_id": "x", "problem_st', "is not a JSON object"),
        ('{"instance_id": "x", "problem_statement": "a"}\n', "no instance has a text and"),
    ],
)
def test_damaged_problem_statements_say_why(tmp_path, lines, message):
    boards, problems = files(tmp_path, run("r", details()))
    problems.write_text(lines)
    with pytest.raises(EvalSetError) as caught:
        read_swebench(boards, problems, {"m": "r"})
    assert message in str(caught.value)


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared")
def test_the_matched_pool_of_the_real_leaderboard():
    draft = read_swebench(
        BOARD,
        PROBLEMS,
        {
            "gpt-5": "20250807_mini-v1.7.0_gpt-5",
            "gpt-5-mini": "20250807_mini-v1.7.0_gpt-5-mini",
            "gpt-5.2": "20251211_mini-v1.17.2_gpt-5.2-2025-12-11-high",
        },
    )
    assert draft.report.dropped == ()
    np.testing.assert_allclose(draft.quality.mean(axis=0), [0.650, 0.598, 0.718])
    assert draft.quality.max(axis=1).sum() == 390
    mean_cost = draft.cost_usd.mean(axis=0)
    assert round(100 * (1 - mean_cost[1] / mean_cost[2]), 1) == 93.2


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared")
def test_every_sound_run_of_the_real_leaderboard_imports_together():
    sound = {run.folder: run.folder for run in list_runs(BOARD) if not run.problem}
    draft = read_swebench(BOARD, PROBLEMS, sound)
    assert draft.quality.shape == (500, 39)
