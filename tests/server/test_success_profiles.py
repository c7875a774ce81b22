"""Success profiles route alike in the preview, the release, the report and `serve`."""

import json
from datetime import date

import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.compare import replay_policy
from hydra_core.replay.sweep import sweep_own_value

SET, POOL = SAMPLE_DATA / "console_demo", CATALOGS / "paper_five.yaml"


@pytest.mark.slow
def test_they_route_alike_to_the_query(make, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path / "workspace"))
    path = tmp_path / "fitted.yaml"
    options = ["--catalog", str(POOL), "--as", "success", "--folds", "2", "--out", str(path)]
    assert main(["fit", str(SET), *options]) == 0
    catalog, evalset = load_catalog(path), load_evalset(SET)
    sweep = sweep_own_value(evalset, catalog, cross_fitted=True, today=date.today())
    preview = replay_policy(catalog, sweep)
    assert len([share for share in preview.metrics.shares.values() if share > 0.01]) > 1

    assert main(["publish", str(path), "--as", "fitted", "--evalset", str(SET)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(SET), "--catalog", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["router"]["shares"] == pytest.approx(preview.metrics.shares)
    assert report["success_profiles"]["evalset_sha256"] == evalset.digest

    client = make(catalog="store:fitted", upstreams="")
    texts, chosen = evalset.texts, []
    assert texts is not None
    for row in sweep.data.rows[:300]:
        asked = {"model": "auto", "messages": [{"role": "user", "content": texts[row]}]}
        answer = client.post("/v1/decision", json=asked)
        assert answer.status_code == 200, answer.text
        chosen.append(answer.json()["model"])
    assert chosen == [sweep.data.pool.ids[i] for i in preview.choice[:300]]
