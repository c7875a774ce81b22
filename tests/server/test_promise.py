"""serve watches the catalog's promise: feedback that contradicts it shows in metrics and health."""

from datetime import UTC, datetime, timedelta

import numpy as np

from hydra_core.base.fitted_blocks import Promised
from hydra_core.catalog.chosen_and_promised import with_promise
from hydra_core.decision_log.records import OutcomeRecord
from hydra_core.decision_log.writer import LogWriter
from hydra_core.routing.router import Router
from hydra_core.server.alerts import PromiseWatch
from hydra_core.server.live import FileSource, LiveCatalog
from tests.live.logs import decision
from tests.server.conftest import CATALOG, asked, wait_for


def test_bad_feedback_ends_a_promise(make, tmp_path):
    made = Promised(0.02, 0.95, "gpt-5.4", 0.8, 0.3, 900, "mine", "cross-fitted predictions", "")
    path = tmp_path / "promised.yaml"
    path.write_text(with_promise(CATALOG.read_text(), "pool", made, ("tau", 0.24)))
    client = make(path, log=str(tmp_path / "log"), canary_look_s=0.1)
    assert "hydra_promise_not_covered 0.0" in client.get("/metrics").text
    for _ in range(40):
        decided = client.post("/v1/decision", json=asked("hi")).json()
        rating = {"decision_id": decided["decision_id"], "quality": 0.0}
        assert client.post("/v1/outcomes", json=rating).status_code == 202
    wait_for(lambda: "hydra_promise_not_covered 1.0" in client.get("/metrics").text)
    (note,) = client.get("/health/ready").json()["notes"]
    assert "Feedback contradicts it" in note


def test_a_promise_that_is_just_kept_is_not_ended_by_looking_often(tmp_path):
    """Over seven days that move with each look, this feedback would have ended it."""
    made = Promised(0.02, 0.95, "gpt-5.4", 0.7, 0.3, 900, "mine", "cross-fitted predictions", "")
    path, log = tmp_path / "pool.yaml", LogWriter(tmp_path / "log")
    path.write_text(with_promise(CATALOG.read_text(), "pool", made, ("tau", 0.24)))
    live = LiveCatalog(FileSource(path), Router)
    begin, kept = datetime(2026, 1, 1, tzinfo=UTC), np.random.default_rng(0).random(900) < 0.7
    now = [begin]
    watch = PromiseWatch(live, tmp_path / "log", clock=lambda: now[0])
    for day in range(3, 90, 3):
        for i in range(10 * day - 30, 10 * day):
            at = begin + timedelta(hours=2.4 * i)
            log.add(decision(i, at=at, catalog_digest=live.now.catalog.digest))
            log.add(OutcomeRecord(f"d{i}", at, float(kept[i])))
        log.flush()
        now[0] = begin + timedelta(days=day)
        watch.look()
        assert watch.ended == "", day
    log.close()
