"""A model's output price doubled: every figure moves exactly as its tokens say."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from hydra_core.catalog import parse_catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.cli.main import main
from hydra_core.console.compare.view import pair, routed_run
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.folders import list_evalsets
from hydra_core.evalsets.scores import load_scores
from hydra_core.export.release import measured, provenance, release_text
from hydra_core.replay.compare import replay_policy, what_if
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.report import report_document
from hydra_core.replay.sweep import sweep_catalog

ROOT = Path(__file__).resolve().parents[2]
SET = ROOT / "sample_data" / "console_demo"
DEARER = "claude-sonnet-4.6"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
FILE = (ROOT / "catalog" / "paper_five.yaml").read_text(encoding="utf-8")


def priced(text: str, model: str, name: str, usd: float) -> str:
    document = CatalogDocument.parse(text)
    document.set("models", model, f"{name}_usd_per_mtok", usd)
    return document.text()


#: With a model that is dearer still, the order of the pool and so every route stay as they are.
TEXT = priced(FILE, "gpt-5.4", "input", 10.0)
PRICE = parse_catalog(TEXT).model(DEARER).output_usd_per_mtok


def doubled() -> str:
    return priced(TEXT, DEARER, "output", 2 * PRICE)


@pytest.fixture(scope="module")
def world():
    """The set, its scores, and both catalogs."""
    evalset, before, after = load_evalset(SET), parse_catalog(TEXT), parse_catalog(doubled())
    return evalset, load_scores(evalset, before.predictor_fingerprint), before, after


@pytest.fixture(scope="module")
def replays(world):
    evalset, scores, *catalogs = world
    return [
        replay_policy(one, sweep_catalog(evalset, one, scores, today=date(2026, 6, 1)))
        for one in catalogs
    ]


@pytest.fixture(scope="module")
def sweeps(world):
    evalset, scores, *catalogs = world
    return [sweep_catalog(evalset, one, scores, today=date(2026, 6, 1)) for one in catalogs]


@pytest.fixture(scope="module")
def by_hand(world, replays):
    """USD per query more: what the model wrote on its queries, at its price once more."""
    evalset = world[0]
    run = replays[0].run
    written = evalset.extras["output_tokens"][:, evalset.models.index(DEARER)]
    its = run.rows[run.models == DEARER]
    assert its.size > 0
    return float(written[its].sum() * PRICE / 1e6 / run.rows.size)


def test_tune_and_its_curve(world, sweeps, by_hand):
    tau = world[2].policy.tau
    before, after = (evaluate(sweep, tau).router.mean_cost_usd.value for sweep in sweeps)
    assert after - before == pytest.approx(by_hand)
    lines = [sweep.curve.mean_cost_usd[sweep.curve.row(tau)] for sweep in sweeps]
    assert lines[1] - lines[0] == pytest.approx(by_hand)


def test_what_if(replays, by_hand):
    found = what_if(*replays).comparison
    assert found.flipped.size == 0
    assert found.cost_usd.value == pytest.approx(by_hand)
    assert found.quality.value == 0


def test_compare(world, sweeps, by_hand):
    runs = [routed_run("router", sweep, world[2].policy.tau) for sweep in sweeps]
    assert pair(*runs, sweeps[0]).found.cost_usd.value == pytest.approx(by_hand)


def test_what_ship_keeps_and_the_release_says(replays, by_hand):
    (info,) = [one for one in list_evalsets(SET.parent) if one.path == SET]
    before, after = (measured(one, info) for one in replays)
    rise = after["values"]["mean_cost_usd"][0] - before["values"]["mean_cost_usd"][0]
    assert rise == pytest.approx(by_hand)
    origin = provenance(None, after, author="Ana", note="dearer", now=NOW)
    assert "# costs: the catalog's prices" in release_text(doubled(), origin)


def test_report(world, sweeps, by_hand):
    tau = world[2].policy.tau
    before, after = (report_document(evaluate(sweep, tau), made=NOW) for sweep in sweeps)
    costs = [one["router"]["mean_cost_usd"] for one in (before, after)]
    assert costs[1] - costs[0] == pytest.approx(by_hand)
    assert after["costs"] == "the catalog's prices"


def test_the_command_line_follows_and_recorded_does_not(tmp_path, capsys, by_hand):
    files = []
    for name, text in (("before", TEXT), ("after", doubled())):
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(text, encoding="utf-8")

    def cost(path, *more):
        assert main(["evaluate", str(SET), "--catalog", str(path), "--json", *more]) == 0
        return json.loads(capsys.readouterr().out)["router"]["mean_cost_usd"]

    assert cost(files[1]) - cost(files[0]) == pytest.approx(by_hand)
    assert cost(files[1], "--costs", "recorded") == cost(files[0], "--costs", "recorded")


def test_a_cut_price_never_costs_more(world, sweeps):
    evalset, scores, *_ = world
    cut = parse_catalog(priced(TEXT, DEARER, "output", PRICE - 0.5))  # the order stays
    cheaper = sweep_catalog(evalset, cut, scores, today=date(2026, 6, 1)).curve
    assert np.array_equal(cheaper.knob, sweeps[0].curve.knob)
    saved = sweeps[0].curve.mean_cost_usd - cheaper.mean_cost_usd
    assert saved.min() > -1e-15
    assert saved[0] > 0
