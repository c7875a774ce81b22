"""Helicone's export: thumbs and scores are the quality; what it does not know stays unknown."""

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.formats import Kind, looks_like
from hydra_core.evalsets.importers.given import Given, parse_prices
from hydra_core.evalsets.importers.traffic.gateways import read_helicone
from tests.evalsets.importers.test_traffic import jsonl, outcomes, skipped


def helicone(number, **changes):
    """A row of Helicone's export tool."""
    return {
        "request_id": f"h{number}", "response_id": f"a{number}", "response_status": 200,
        "request_model": "gpt-5", "provider": "OPENAI", "delay_ms": 2_500,
        "request_body": {"model": "gpt-5", "messages": [
            {"role": "system", "content": "Be short."}, {"role": "user", "content": f"ask {number}"}
        ]},
        "prompt_tokens": 120, "completion_tokens": 40, "prompt_cache_read_tokens": 0,
        "prompt_cache_write_tokens": 0, "cost": 0.0125,
        "cache_reference_id": "00000000-0000-0000-0000-000000000000",
        "properties": {"Helicone-Session-Id": "s1"}, "scores": {"helicone-score-feedback": 1},
        **changes,
    }  # fmt: skip


def test_helicones_rows_are_read_with_their_thumbs(tmp_path):
    rows = [
        helicone(1),
        helicone(2, scores={"helicone-score-feedback": 0}, model_override="gpt-5-mini"),
        helicone(3, scores={}),
        helicone(4, response_status=500),
        helicone(5, cache_reference_id="3c90c3cc-0d44-4b50-8888-8dd25736052a"),
        helicone(6, request_body={"helicone_message": "fetching body from signed_url..."}),
        helicone(7, scores=None, feedback_rating=True),
        helicone(8, scores={"helicone-score-feedback": {"value": 1, "valueType": "boolean"}}),
    ]
    draft = read_helicone([jsonl(tmp_path / "rows.jsonl", rows)])
    assert outcomes(draft) == {
        ("h1", "gpt-5"): (1.0, 0.0125), ("h2", "gpt-5-mini"): (0.0, 0.0125),
        ("h7", "gpt-5"): (1.0, 0.0125), ("h8", "gpt-5"): (1.0, 0.0125),
    }  # fmt: skip
    assert draft.queries["text"].tolist() == ["ask 1", "ask 2", "ask 7", "ask 8"]
    at = draft.models.index("gpt-5")
    assert draft.extras["latency_s"][0, at] == 2.5
    assert draft.extras["input_tokens"][0, at] == 120
    found = skipped(draft)
    assert found["no feedback"] == found["the request failed"] == 1
    assert found["answered from a cache"] == 1
    assert sum(found.values()) == 4


def test_embeddings_and_images_of_helicone_are_no_chat(tmp_path):
    rows = [
        helicone(1, request_path="https://x.example/v1/chat/completions"),
        helicone(2, request_path="https://x.example/v1/embeddings", request_body={"input": "a"}),
        helicone(3, request_path="/v1/images/generations", request_body={"prompt": "a cat"}),
        helicone(4, request_body={"input": "a"}, response_body={"data": [{"embedding": [0.1]}]}),
    ]  # fmt: skip
    draft = read_helicone([jsonl(tmp_path / "rows.jsonl", rows)])
    assert draft.queries["query_id"].tolist() == ["h1"]
    assert skipped(draft) == {
        "not a chat request (embeddings)": 1, "not a chat request (images)": 1,
        "not a chat request (a list of data)": 1,
    }  # fmt: skip


def test_what_helicone_does_not_know_is_no_measurement(tmp_path):
    """A cost of 0, and input tokens of which a prompt cache may hold a part."""
    rows = [helicone(1), helicone(2, cost=0.0), helicone(3, prompt_cache_read_tokens=100, cost=0.0)]
    file = jsonl(tmp_path / "rows.jsonl", rows)
    draft = read_helicone([file])
    assert np.isnan(draft.cost_usd[:, 0]).tolist() == [False, True, True]
    assert np.isnan(draft.extras["input_tokens"][:, 0]).tolist() == [False, False, True]
    assert "2 requests have a cost of 0" in " ".join(draft.report.warnings)
    priced = read_helicone([file], Given(prices=parse_prices(["gpt-5=1.25,10"])))
    assert priced.cost_usd[1, 0] == pytest.approx((120 * 1.25 + 40 * 10) / 1e6)
    assert np.isnan(priced.cost_usd[2, 0])


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 500, "prompt_tokens_details": {"cached_tokens": 100}}, 500),
        ({"input_tokens": 500, "input_tokens_details": {"cached_tokens": 100}}, 500),
        ({"input_tokens": 500, "cache_read_input_tokens": 100,
          "cache_creation_input_tokens": 30}, 630),
        ({"prompt_tokens": 500}, np.nan),
        ({"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 100}}, np.nan),
    ],
)  # fmt: skip
def test_the_provider_says_what_of_the_input_was_cached(tmp_path, usage, read):
    """Helicone's own counts do not say whether cached tokens are a part of the input."""
    changes = {"prompt_cache_read_tokens": 100, "response_body": {"usage": usage}, "cost": 0.0}
    rows = [helicone(1), helicone(2, **changes)]
    given = Given(prices=parse_prices(["gpt-5=1.25,10,cached=0.125"]))
    draft = read_helicone([jsonl(tmp_path / "rows.jsonl", rows)], given)
    assert np.array_equal(draft.extras["input_tokens"][:, 0], [120, read], equal_nan=True)
    cost = ((read - 100) * 1.25 + 100 * 0.125 + 40 * 10) / 1e6
    assert draft.cost_usd[1, 0] == pytest.approx(cost, nan_ok=True)


def test_reasoning_that_helicone_counts_beside_the_answer_is_output(tmp_path):
    rows = [helicone(1, reasoning_tokens=600, total_tokens=760), helicone(2, reasoning_tokens=0)]
    draft = read_helicone([jsonl(tmp_path / "rows.jsonl", rows)])
    assert draft.extras["output_tokens"][:, 0].tolist() == [640, 40]


def test_one_of_helicones_scores_is_chosen(tmp_path):
    scores = {"helicone-score-feedback": 1, "accuracy": 80}
    file = jsonl(tmp_path / "rows.jsonl", [helicone(1, scores=scores)])
    assert looks_like(file) is Kind.HELICONE
    with pytest.raises(EvalSetError, match="choose one with --score"):
        read_helicone([file])
    command = ["import", "helicone", str(file), "--score", "accuracy", "--quality-scale", "100"]
    assert main([*command, "--out", str(tmp_path / "set")]) == 0
    assert load_evalset(tmp_path / "set").quality.tolist() == [[0.8]]
