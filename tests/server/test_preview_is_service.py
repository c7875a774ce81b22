"""What is shown is what happens: preview = release = report = what `serve` does, to the query."""

import json
from collections import Counter
from datetime import date

import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_catalog
from hydra_core.replay.what_if import replay_policy

SET = SAMPLE_DATA / "console_demo"
NEWCOMER = """\
  - id: newcomer
    provider: openai
    status: active
    input_usd_per_mtok: 1.1
    output_usd_per_mtok: 4.4
    context_window: 128000
    vision: false
    tools: true
    capabilities: {capabilities}
    price_source: typed
    price_date: 2026-11-01
"""


@pytest.fixture
def pool(tmp_path):
    """The shipped pool, a model that has no outcomes, and another price."""
    path = CATALOGS / "paper_five.yaml"
    catalog, text = load_catalog(path), path.read_text(encoding="utf-8")
    levels = {
        name: round(band.lo + 0.6 * band.width, 4)
        for name, band in zip(catalog.dimensions, catalog.bands, strict=True)
    }
    price = f"input_usd_per_mtok: {catalog.models[-1].input_usd_per_mtok:.2f}"
    assert price in text
    text = text.replace(price, "input_usd_per_mtok: 1.05", 1).rstrip("\n") + "\n"
    edited = tmp_path / "pool.yaml"
    edited.write_text(text + NEWCOMER.format(capabilities=json.dumps(levels)), encoding="utf-8")
    return edited


@pytest.mark.slow
def test_traffic_by_model_is_the_same_everywhere(pool, make, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path / "workspace"))
    catalog, evalset = load_catalog(pool), load_evalset(SET)
    sweep = sweep_catalog(evalset, catalog, catalog_scores(evalset, catalog), today=date.today())
    preview = replay_policy(catalog, sweep)
    assert preview.metrics.shares["newcomer"] > 0.01
    assert preview.metrics.unknown == pytest.approx(preview.metrics.shares["newcomer"])

    assert main(["publish", str(pool), "--as", "pool", "--evalset", str(SET)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(SET), "--catalog", str(pool), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["router"]["shares"] == pytest.approx(preview.metrics.shares)

    client = make(catalog="store:pool", upstreams="")
    texts = evalset.texts
    assert texts is not None
    ids = sweep.data.pool.ids
    expected = [ids[i] for i in sweep.served(catalog.policy.tau)[:300]]
    chosen = []
    for row in sweep.data.rows[:300]:
        asked = {"model": "auto", "messages": [{"role": "user", "content": texts[row]}]}
        answer = client.post("/v1/decision", json=asked)
        assert answer.status_code == 200, answer.text
        chosen.append(answer.json()["model"])
    assert chosen == expected
    assert Counter(chosen)["newcomer"] > 0
