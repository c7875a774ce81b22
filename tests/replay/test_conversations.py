"""Whole conversations replayed in every sticky mode, against a recount turn by turn."""

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.types import StickyMode
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.evalsets.scores import save_scores
from hydra_core.replay.conversations import _router, replay_conversations, why_per_query
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_catalog
from hydra_core.routing.sessions import assumed_cache
from tests.pages.conftest import ROOT

TAU, LENGTH = 0.12, 4
CATALOG = assumed_cache(load_catalog(ROOT / "catalog" / "paper_five.yaml"), 0.1)


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    """The demo messages dealt into conversations of four turns, with tokens that grow."""
    demo = load_evalset(ROOT / "sample_data" / "console_demo")
    rng = np.random.default_rng(0)
    turn = np.arange(demo.n) % LENGTH + 1
    queries = demo.queries.drop(columns="cluster").assign(
        conversation_id=[f"c{i // LENGTH}" for i in range(demo.n)], turn=turn
    )
    shape = demo.quality.shape
    extras = {
        "input_tokens": np.round(turn[:, None] * 900 + rng.integers(0, 300, shape)).astype(float),
        "output_tokens": rng.integers(50, 500, shape).astype(float),
    }
    made = save_evalset(
        tmp_path_factory.mktemp("talks") / "set",
        name="talks",
        queries=queries,
        models=demo.models,
        quality=demo.quality,
        cost_usd=demo.cost_usd,
        extras=extras,
    )
    return made, catalog_scores(demo, CATALOG)


def sweep_of(made, scores):
    return sweep_catalog(made, CATALOG, scores, today=date(2026, 6, 1))


def recount(sweep, choice):
    """USD of every turn: the prompt of the turn before is a cache read on the same model."""
    models = [CATALOG.model(name) for name in sweep.data.pool.ids]
    columns = [sweep.evalset.models.index(model.id) for model in models]
    read = sweep.evalset.extras["input_tokens"][:, columns]
    written = sweep.evalset.extras["output_tokens"][:, columns]
    usd = []
    for row, model in enumerate(choice):
        first = row % LENGTH == 0
        kept = 0 if first else min(read[row - 1, model], read[row, model])
        same = not first and choice[row - 1] == model
        spec = models[model]
        cached = spec.cached_input_usd_per_mtok
        price = cached if same and cached is not None else spec.input_usd_per_mtok
        plain = (read[row, model] - kept) * spec.input_usd_per_mtok
        usd.append(1e-6 * (kept * price + plain + written[row, model] * spec.output_usd_per_mtok))
    return np.array(usd)


def test_conversations_of_one_cluster_count_as_one(talks):
    """Every conversation twice, such as in two languages, says no more than once."""
    made, scores = talks
    frame = made.queries.assign(cluster=made.queries["conversation_id"])
    again = frame.assign(
        query_id=frame["query_id"] + "-b", conversation_id=frame["conversation_id"] + "-b"
    )
    both = replace(
        made,
        queries=pd.concat([frame, again], ignore_index=True),
        quality=np.concatenate([made.quality] * 2),
        cost_usd=np.concatenate([made.cost_usd] * 2),
        extras={name: np.concatenate([values] * 2) for name, values in made.extras.items()},
    )
    one, two = sweep_of(made, scores), sweep_of(both, np.concatenate([scores] * 2))
    strong = one.data.pool.ids[-1]
    once, twice = (replay_conversations(sweep, TAU, strong).modes[0] for sweep in (one, two))
    for name in ("quality", "usd_per_turn", "cs"):
        narrow, wide = getattr(once, name), getattr(twice, name)
        assert wide.value == pytest.approx(narrow.value)
        assert wide.lo == pytest.approx(narrow.lo)


def test_the_gates_of_a_set_hold_turn_by_turn(talks):
    sweep = sweep_of(*talks)
    often = int(np.bincount(sweep.route(TAU)).argmax())
    closed = np.zeros(sweep.data.quality.shape, dtype=bool)
    closed[::3, often] = True
    gated = replace(sweep, data=replace(sweep.data, closed=closed))
    route = gated.route(TAU)
    assert (route != sweep.route(TAU)).any()
    found = replay_conversations(gated, TAU, sweep.data.pool.ids[-1])
    mode = next(one for one in found.modes if one.mode is StickyMode.PER_REQUEST)
    assert mode.usd_per_turn.value == pytest.approx(recount(gated, route).mean())


def test_every_mode_costs_what_its_turns_cost(talks):
    sweep = sweep_of(*talks)
    strong = sweep.data.pool.ids[-1]
    found = replay_conversations(sweep, TAU, strong)
    assert (found.turns, found.conversations, found.left_out) == (640, 160, 0)
    by_mode = {one.mode: one for one in found.modes}
    assert set(by_mode) == set(StickyMode)
    anew = sweep.route(TAU)
    kept = anew[np.arange(640) // LENGTH * LENGTH]
    always = recount(sweep, np.full(640, sweep.data.pool.ids.index(strong)))
    for mode, choice in (
        (StickyMode.PER_REQUEST, anew),
        (StickyMode.PER_SESSION, kept),
        (StickyMode.PER_CONTENT, kept),
    ):
        one, usd = by_mode[mode], recount(sweep, choice)
        assert one.usd_per_turn.value == pytest.approx(usd.mean())
        assert one.cs.value == pytest.approx(1 - usd.sum() / always.sum())
        assert one.quality.value == pytest.approx(sweep.data.quality[np.arange(640), choice].mean())
        changes = (np.diff(choice) != 0) & (np.arange(1, 640) % LENGTH != 0)
        assert one.switches == pytest.approx(changes.sum() / 160)
    assert by_mode[StickyMode.PER_SESSION].lost_usd == 0.0
    adaptive = by_mode[StickyMode.ADAPTIVE].switches
    assert 0 <= adaptive <= by_mode[StickyMode.PER_REQUEST].switches


def test_what_switches_lose_is_the_cache_read_they_missed(talks):
    sweep = sweep_of(*talks)
    found = replay_conversations(sweep, TAU, sweep.data.pool.ids[-1])
    anew = sweep.route(TAU)
    models = [CATALOG.model(name) for name in sweep.data.pool.ids]
    columns = [sweep.evalset.models.index(model.id) for model in models]
    read = sweep.evalset.extras["input_tokens"][:, columns]
    lost = 0.0
    for row in range(640):
        model = anew[row]
        if row % LENGTH and anew[row - 1] != model:
            spec = models[model]
            cached = spec.cached_input_usd_per_mtok
            saved = 0.0 if cached is None else spec.input_usd_per_mtok - cached
            lost += 1e-6 * min(read[row - 1, model], read[row, model]) * saved
    one = next(one for one in found.modes if one.mode is StickyMode.PER_REQUEST)
    assert one.lost_usd == pytest.approx(lost / 160)


def test_the_router_that_plays_has_the_replays_own_pool(talks):
    sweep = sweep_of(*talks)
    played = _router(sweep, TAU, StickyMode.PER_REQUEST)._state.pool
    assert played.ids == sweep.data.pool.ids
    np.testing.assert_allclose(played.capabilities, sweep.data.pool.capabilities)
    np.testing.assert_allclose(played.weights, sweep.data.pool.weights)


def test_a_rewritten_history_is_routed_anew_and_reads_no_cache(talks):
    made, scores = talks
    read = made.extras["input_tokens"].copy()
    read[2::LENGTH] = 100.0
    sweep = sweep_of(replace(made, extras={**made.extras, "input_tokens": read}), scores)
    found = replay_conversations(sweep, TAU, sweep.data.pool.ids[-1])
    session = next(one for one in found.modes if one.mode is StickyMode.PER_SESSION)
    whole = replay_conversations(sweep_of(made, scores), TAU, sweep.data.pool.ids[-1])
    before = next(one for one in whole.modes if one.mode is StickyMode.PER_SESSION)
    assert session.cached_share < before.cached_share
    assert session.lost_usd == 0.0


def test_an_incomplete_conversation_is_left_out_and_a_set_without_is_per_query(talks):
    made, scores = talks
    quality = made.quality.copy()
    quality[5] = np.nan
    found = replay_conversations(sweep_of(replace(made, quality=quality), scores), TAU, "gpt-5.4")
    assert (found.conversations, found.left_out) == (159, 1)
    bare = sweep_of(replace(made, extras={}), scores)
    assert "has no input_tokens, output_tokens" in why_per_query(bare)
    assert replay_conversations(bare, TAU, "gpt-5.4") is None
    one = replace(made, queries=made.queries.assign(turn=pd.Series(1, made.queries.index)))
    assert "no conversation is complete" in why_per_query(sweep_of(one, scores))


def test_one_conversation_has_savings_without_an_interval_and_a_free_one_none(
    talks, tmp_path, capsys
):
    made, scores = talks
    for name, price in (("one", 1.0), ("free", 0.0)):
        extras = {key: values[:LENGTH] for key, values in made.extras.items()} if price else {}
        kept = save_evalset(
            tmp_path / name, name=name, queries=made.queries.head(LENGTH), models=made.models,
            quality=made.quality[:LENGTH], cost_usd=price * made.cost_usd[:LENGTH], extras=extras,
        )  # fmt: skip
        save_scores(kept, CATALOG.predictor_fingerprint, CATALOG.dimensions, scores[:LENGTH])
        catalog = str(ROOT / "catalog" / "paper_five.yaml")
        assert main(["evaluate", str(kept.path), "--catalog", catalog]) == 0
        said = capsys.readouterr().out
        assert "nan" not in said
    assert "–" in next(line for line in said.splitlines() if line.startswith("router "))
