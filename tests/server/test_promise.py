"""serve watches the catalog's promise: feedback that contradicts it shows in metrics and health."""

from hydra_core.base.fitted_blocks import Promised
from hydra_core.catalog.chosen_and_promised import with_promise
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
