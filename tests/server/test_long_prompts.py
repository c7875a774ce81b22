"""Prices of long requests: preview, release, report and service predict them alike."""

import json
from datetime import date

import numpy as np

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.schema import parse_catalog
from hydra_core.cli.main import main
from hydra_core.decision_log.reading import read_log
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.predictions import input_sizes
from hydra_core.replay.sweep import sweep_own_value
from tests.routing.test_success_profiles import valued
from tests.server.conftest import asked, wait_for

SET = SAMPLE_DATA / "console_demo"


def tiered(above):
    """The catalog, in which all but its last models cost 30 times more above so many tokens."""
    text = valued((CATALOGS / "paper_five.yaml").read_text(), value_usd=0.02)
    document = CatalogDocument.parse(text)
    for row, model in enumerate(parse_catalog(text).models[:-1]):
        tier = {"above_tokens": above, "input_usd_per_mtok": 30 * model.input_usd_per_mtok,
                "output_usd_per_mtok": 30 * model.output_usd_per_mtok}  # fmt: skip
        document.set("models", row, "long_prompts", [tier])
    return document.text()


def test_a_long_request_is_priced_alike_everywhere(make, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path / "workspace"))
    evalset = load_evalset(SET)
    sizes = input_sizes(evalset)
    above = int(np.median(sizes))
    path = tmp_path / "tiered.yaml"
    path.write_text(tiered(above))
    options = {"cross_fitted": True, "today": date.today()}
    sweep = sweep_own_value(evalset, parse_catalog(path.read_text()), **options)
    usual = sweep_own_value(evalset, parse_catalog(tiered(10**9)), **options)
    long = sizes[sweep.data.rows] > above
    dearer = sweep.data.predicted.cost_usd / usual.data.predicted.cost_usd
    np.testing.assert_allclose(dearer[~long], 1.0)
    np.testing.assert_allclose(dearer[long, :-1], 30.0)
    preview = sweep.route(0.02)
    moved = preview != usual.route(0.02)
    assert moved[long].any()
    assert not moved[~long].any()

    assert main(["publish", str(path), "--as", "tiered", "--evalset", str(SET)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(SET), "--catalog", str(path), "--json"]) == 0
    ids = sweep.data.pool.ids
    shares = {name: float((preview == i).mean()) for i, name in enumerate(ids)}
    reported = json.loads(capsys.readouterr().out)["router"]["shares"]
    assert {name: round(share, 9) for name, share in reported.items()} == {
        name: round(share, 9) for name, share in shares.items()
    }
    client = make(catalog="store:tiered", upstreams="")
    rows = np.flatnonzero(moved)[:10].tolist() + np.flatnonzero(~moved)[:10].tolist()
    for row in rows:
        message = {"role": "user", "content": evalset.texts[sweep.data.rows[row]]}
        answer = client.post("/v1/decision", json={"model": "auto", "messages": [message]})
        assert answer.json()["model"] == ids[preview[row]], row


def test_rounds_of_an_upstreams_own_tools_do_not_make_a_request_long(make, tmp_path):
    """The upstream says 100 tokens in all, and bills each of its rounds by its own length."""
    path = tmp_path / "tiered.yaml"
    path.write_text(tiered(50))
    client = make(catalog=path, log=str(tmp_path / "log"))
    for more in ({}, {"web_search_options": {}}):
        assert client.post("/v1/chat/completions", json=asked("hi", model="gpt-5.4-mini", **more))
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 2)
    once, searched = read_log(tmp_path / "log").decisions["cost_usd"]
    np.testing.assert_allclose(once / searched, 30.0)
