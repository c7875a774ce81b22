"""What one request may cost the service."""

import json

import pytest

from hydra_core.decision_log.reading import read_log
from tests.server.conftest import EASY, asked, wait_for


@pytest.mark.parametrize(
    "own",
    [
        {"deny": ["x"] * 500_000},
        {"allow": ["gpt-5.4"] * 1_001},
        {"health": {f"m{n}": 1 for n in range(1_001)}},
    ],
    ids=lambda own: next(iter(own)),
)
def test_a_request_may_name_only_so_many_models(make, own):
    answer = make().post("/v1/decision", json=asked(EASY, hydra=own))
    assert answer.status_code == 400
    assert len(answer.text) < 1_000


def test_only_models_of_the_catalog_are_logged(make, tmp_path):
    own = {"deny": ["nobody's", "gpt-5.4", *(f"x{n}" for n in range(900))]}
    client = make(log=str(tmp_path / "log"))
    assert client.post("/v1/decision", json=asked(EASY, hydra=own)).status_code == 200
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    assert list(read_log(tmp_path / "log").decisions.iloc[0]["deny"]) == ["gpt-5.4"]


@pytest.mark.parametrize("count", [5_000, 600_000])
def test_an_outcome_of_very_many_keys_is_refused_in_few_words(make, tmp_path, count):
    client = make(log=str(tmp_path / "log"))
    body = json.dumps({f"key{n}": n for n in range(count)})
    answer = client.post("/v1/outcomes", content=body)
    assert answer.status_code == (400 if len(body) < 100_000 else 413)
    assert len(answer.text) < 3_000
