"""What one request may cost the service."""

import json
import re

import pytest

from hydra_core.decision_log.reading import read_log
from tests.server.conftest import CATALOG, EASY, asked, wait_for


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


@pytest.mark.parametrize("tags", [["x" * 500_000], [f"{n}-{'x' * 900}" for n in range(900)]])
def test_tags_of_any_length_are_refused_and_logged_in_few_words(make, tmp_path, tags):
    client = make(log=str(tmp_path / "log"))
    answer = client.post("/v1/decision", json=asked(EASY, hydra={"require": tags}))
    assert answer.status_code == 400
    assert len(answer.text) < 10_000
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    logged = list(read_log(tmp_path / "log").decisions.iloc[0]["require"])
    assert 1 <= len(logged) <= 20
    assert max(map(len, logged)) <= 100


def test_a_conversation_id_is_a_short_text_or_its_digest(make, tmp_path):
    client, long = make(log=str(tmp_path / "log")), "x" * 500_000
    for own in (long, "\ud800"):
        body = asked(EASY, hydra={"conversation_id": own})
        assert client.post("/v1/decision", content=json.dumps(body)).status_code == 400
    head = {"x-hydra-conversation-id": long[:2_000]}
    assert client.post("/v1/decision", json=asked(EASY), headers=head).status_code == 400
    answer = client.post("/v1/decision", json=asked(EASY, prompt_cache_key=long))
    assert answer.status_code == 200
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    assert len(read_log(tmp_path / "log").decisions.iloc[0]["conversation_id"]) == 64


def test_a_dry_run_says_in_few_words_what_is_wrong_with_very_long_ones(make):
    catalog = re.sub("- id: .*", "- id: " + "y" * 1_000_000, CATALOG.read_text(), count=1)
    answer = make().post("/v1/dry-run", json={"catalog": catalog})
    assert not answer.json()["valid"]
    assert len(answer.text) < 100_000
