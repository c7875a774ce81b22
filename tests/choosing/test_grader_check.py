"""A lift from telling groups apart is told from a lift on difficulty."""

import numpy as np
import pytest

from hydra_core.choosing.sources.grader_check import (
    FindingKind,
    GainFrom,
    cell_findings,
    grader_check,
    split_by_group,
)

N = 1_200
MODELS = ("cheap", "strong")


def graded(seed=0):
    """Two groups; in the second the cheap model's answers are graded wrong."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, N)
    chance = np.stack([np.where(group == 1, 0.1, 0.8), np.full(N, 0.8)], axis=1)
    quality = (rng.random((N, 2)) < chance).astype(float)
    cost = np.tile([1.0, 5.0], (N, 1)) * rng.lognormal(0, 0.1, (N, 1))
    return group, quality, cost


def by_difficulty(seed=0):
    """The cheap model fails on hard queries, and both groups have as many of them."""
    rng = np.random.default_rng(seed)
    group, hard = rng.integers(0, 2, N), rng.random(N) < 0.5
    chance = np.stack([np.where(hard, 0.2, 0.9), np.full(N, 0.9)], axis=1)
    quality = (rng.random((N, 2)) < chance).astype(float)
    cost = np.tile([1.0, 5.0], (N, 1)) * rng.lognormal(0, 0.1, (N, 1))
    return group, hard, quality, cost


def test_a_router_that_knows_the_group_gains_between_groups_alone():
    group, quality, cost = graded()
    choice = group[:, None].astype(np.uint8)
    names = [f"g{i}" for i in group]
    found = cell_findings(MODELS, names, np.where(group[:, None] == [1, 9], 0.0, quality))
    check = grader_check(names, quality, cost, choice, findings=found)
    assert check.gain_from is GainFrom.GROUPS
    assert not check.may_recommend
    assert "Check the grader first: cheap solves 0 %" in check.sentence
    assert "The gain comes from telling the groups apart" in check.sentence
    assert check.between.value == pytest.approx(check.total.value, abs=0.01)


def test_it_counts_where_the_operator_says_that_groups_are_kinds_of_traffic():
    group, quality, cost = graded()
    choice = group[:, None].astype(np.uint8)
    names = [f"g{i}" for i in group]
    found = cell_findings(MODELS, names, np.where(group[:, None] == [1, 9], 0.0, quality))
    check = grader_check(names, quality, cost, choice, findings=found, groups_are_traffic=True)
    assert check.may_recommend
    assert "because you said" in check.sentence


def test_a_router_that_knows_the_difficulty_gains_within_groups():
    group, hard, quality, cost = by_difficulty()
    check = grader_check([f"g{i}" for i in group], quality, cost, hard[:, None].astype(np.uint8))
    assert check.gain_from is GainFrom.WITHIN
    assert check.may_recommend
    assert abs(check.between.value) < 0.02
    assert [row.queries for row in check.groups] == sorted(np.bincount(group), reverse=True)


def test_a_router_that_knows_nothing_gains_nowhere():
    group, _, quality, cost = by_difficulty()
    choice = np.random.default_rng(1).integers(0, 2, (N, 3)).astype(np.uint8)
    check = grader_check([f"g{i}" for i in group], quality, cost, choice)
    assert check.gain_from is GainFrom.NOTHING
    assert check.sentence == ""


def test_the_two_parts_add_up():
    group, hard, quality, cost = by_difficulty()
    choice = np.stack([hard, group == 0], axis=1).astype(np.uint8)
    between, within = split_by_group(quality, cost, choice, group)
    check = grader_check([f"g{i}" for i in group], quality, cost, choice)
    assert (between + within).mean() == pytest.approx(check.total.value)


def test_without_a_doubt_a_gain_between_groups_may_count():
    """Real kinds of traffic differ too: the sentence stays, nothing is blocked."""
    group, quality, cost = graded()
    check = grader_check([f"g{i}" for i in group], quality, cost, group[:, None].astype(np.uint8))
    assert check.may_recommend
    assert check.sentence.endswith("kinds of your traffic and graded alike.")


def test_one_group_says_nothing():
    _, hard, quality, cost = by_difficulty()
    check = grader_check(["all"] * N, quality, cost, hard[:, None].astype(np.uint8))
    assert check.gain_from is GainFrom.UNKNOWN
    assert check.numbers()["within"] is None


def kinds(*arguments, **options):
    return [one.kind for one in cell_findings(*arguments, **options)]


def test_a_sound_set_has_no_findings():
    group, _, quality, _ = by_difficulty()
    tokens = np.random.default_rng(2).integers(20, 400, (N, 2)).astype(float)
    names = [f"g{i}" for i in group]
    assert kinds(MODELS, names, quality, input_tokens=tokens, output_tokens=tokens + 1) == []


def test_dead_and_trivial_graders_are_named():
    quality = np.concatenate([np.zeros((30, 2)), np.ones((30, 2))])
    names = ["dead"] * 30 + ["easy"] * 30
    assert set(kinds(MODELS, names, quality)) == {FindingKind.NOBODY, FindingKind.EVERYBODY}


def test_a_model_that_never_solves_what_others_do_is_named():
    quality = np.tile([[0.0, 1.0], [0.0, 0.0]], (20, 1))
    (found,) = cell_findings(MODELS, ["completion"] * 40, quality)
    assert (found.kind, found.model, found.group) == (FindingKind.GROUP, "cheap", "completion")
    assert "the others 50 %" in found.text


def test_failures_on_long_answers_are_told_from_hard_queries():
    rng = np.random.default_rng(3)
    n = 300
    tokens = rng.integers(50, 2_000, (n, 3)).astype(float)
    quality = (rng.random((n, 3)) < 0.7).astype(float)
    quality[tokens[:, 1] > 1_300, 1] = 0.0
    names = ["code"] * n
    (found,) = cell_findings(("a", "b", "c"), names, quality, output_tokens=tokens)
    assert (found.kind, found.model) == (FindingKind.LENGTH, "b")
    hard = np.where(tokens[:, 1] > 1_300, 0.0, 1.0)[:, None] * quality
    assert kinds(("a", "b", "c"), names, hard, output_tokens=tokens) == []


def test_translations_of_a_task_count_once_where_failures_follow_length():
    """40 tasks in 16 languages that fail by chance: 640 rows would look like a broken harness."""
    told = {True: 0, False: 0}
    clusters = np.repeat(np.arange(40), 16)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        tokens = np.repeat(rng.integers(50, 2_000, (40, 3)).astype(float), 16, axis=0)
        quality = np.repeat((rng.random((40, 3)) < 0.6).astype(float), 16, axis=0)
        for once in told:
            units = clusters if once else None
            found = cell_findings(
                ("a", "b", "c"), ["code"] * 640, quality, output_tokens=tokens, clusters=units
            )
            told[once] += any(one.kind is FindingKind.LENGTH for one in found)
    assert told[True] == 0
    assert told[False] > 5


def test_cells_that_look_filled_in_are_named():
    rng = np.random.default_rng(4)
    quality = (rng.random((60, 2)) < 0.5).astype(float)
    read, written = (rng.integers(50, 900, (60, 2)).astype(float) for _ in range(2))
    latency = rng.uniform(1, 9, (60, 2))
    read[:20, 0], written[:20, 0], latency[:20, 0] = 500, 500, 0.0
    written[30:34, 1] = 0.0
    found = cell_findings(
        MODELS, ["x"] * 60, quality, input_tokens=read, output_tokens=written, latency_s=latency
    )
    said = {(one.kind, one.model): one.queries for one in found}
    assert said == {
        (FindingKind.CONSTANT_TOKENS, "cheap"): 20,
        (FindingKind.NO_LATENCY, "cheap"): 20,
        (FindingKind.NO_TOKENS, "strong"): 4,
    }


def test_similarities_are_told_from_yes_and_no():
    quality = np.random.default_rng(5).random((50, 2))
    (found,) = cell_findings(MODELS, ["translation"] * 50, quality)
    assert found.kind is FindingKind.SIMILARITY
    assert found.numbers()["kind"] == "scores that are similarities"
