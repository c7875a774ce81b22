"""Logs rebuilt from public reports give the values that their README states."""

import json
import shlex

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.given import Given, parse_prices
from hydra_core.evalsets.importers.traffic.gateways import read_spend_logs
from hydra_core.evalsets.importers.traffic.langfuse import read_langfuse
from hydra_core.evalsets.importers.traffic.spans import read_spans
from tests.evalsets.importers.shared_cases import CASES, needs_cases

pytestmark = needs_cases
SPEND, LANGFUSE = CASES / "spend_logs", CASES / "langfuse"


def spend_logs(name, votes):
    return read_spend_logs([SPEND / name], Given([SPEND / votes]))


def dropped(draft):
    return {entry.reason: entry.count for entry in draft.report.dropped}


def known(matrix):
    return matrix[np.isfinite(matrix)]


def by_id(draft, column):
    return dict(zip(draft.queries["query_id"], draft.queries[column], strict=True))


def test_spend_logs_keep_cached_tokens_and_their_cost_is_what_was_billed():
    draft = spend_logs("spend.csv", "votes.csv")
    assert len(draft.queries) == 80
    assert set(known(draft.extras["cached_input_tokens"])) == {48_000.0}
    cost = draft.cost_usd[:, draft.models.index("claude-sonnet-4-6")]
    (price,) = parse_prices(["claude-sonnet-4-6=3,15,cached=0.3"]).prices.values()
    assert (
        set(known(cost).round(12))
        == {round(price.price.usd_of_one(50_000, 300, 48_000), 12)}
        == {0.0249}
    )


def test_one_bad_row_of_a_spend_log_is_skipped_and_counted():
    draft = spend_logs("hard.jsonl", "hard_votes.csv")
    texts, images = by_id(draft, "text"), by_id(draft, "has_image")
    assert dropped(draft) == {
        "the message was cut off when it was stored": 1,
        "id of an earlier row": 1,
        "answered from a cache": 3,
        "a negative cost": 1,
        "not a chat request (aembedding)": 1,
        "not a chat request (aget_responses)": 1,
        "the request failed": 1,
    }
    assert texts["dup1"] == "List the open ports on host 0"
    assert texts["resp"] == "Summarise the release notes"
    assert texts["respstr"] == "Summarise the notes"
    assert texts["pdf"] == "Summarise the attached contract"
    assert texts["tool"] == "Fix it"
    assert [name for name, seen in images.items() if seen] == ["img"]
    assert "9007199254740993001" in texts


def test_langfuse_scores_that_are_numbers_are_read_as_they_are():
    observations, scores = LANGFUSE / "observations_v2.jsonl", LANGFUSE / "scores_boolean.jsonl"
    draft = read_langfuse([observations], Given([scores]))
    assert len(draft.queries) == 40
    scored = [json.loads(line) for line in scores.read_text().splitlines()]
    quality = np.nanmax(draft.quality, axis=1).tolist()
    read = dict(zip(draft.queries["query_id"], quality, strict=True))
    assert read == {one["observation_id"]: one["value"] for one in scored}
    assert set(known(draft.extras["cached_input_tokens"])) == {48_000.0}
    assert set(known(draft.extras["input_tokens"])) == {50_000.0}


def test_a_categorical_score_is_refused_and_its_remedy_gives_the_labels_worth(tmp_path, capsys):
    observations = LANGFUSE / "observations_v2.jsonl"
    scores = LANGFUSE / "scores_categorical_noconfig.jsonl"
    command = ["import", "langfuse", str(observations), "--scores", str(scores)]
    command += ["--out", str(tmp_path / "set")]
    assert main(command) == 2
    message = capsys.readouterr().err
    assert "good (30), bad (10)" in message
    remedy = message[message.index("--label") :].splitlines()[0].rstrip(")")
    assert main([*command, *shlex.split(remedy)]) == 0
    read = load_evalset(tmp_path / "set")
    assert sorted(known(read.quality)) == [0.0] * 10 + [1.0] * 30


def test_every_span_has_its_message_its_cached_tokens_and_its_image():
    draft = read_spans([CASES / "spans" / "spans.jsonl"])
    texts, images = by_id(draft, "text"), by_id(draft, "has_image")
    assert texts == {
        "snew": "Fix the parser",
        "sflat": "Fix the parser, flat shape",
        "sopenllmetry": "Fix the parser, indexed shape",
        "simage": "What is in the picture",
        "scache_genai": "cached one",
        "scache_oi": "cached two",
        "soi_parts": "parts text",
    }
    assert [name for name, seen in images.items() if seen] == ["simage"]
    cached = draft.extras["cached_input_tokens"].max(axis=1, initial=0, where=~np.isnan(
        draft.extras["cached_input_tokens"]))  # fmt: skip
    assert dict(zip(draft.queries["query_id"], cached, strict=True))["scache_oi"] == 48_000
    assert dict(zip(draft.queries["query_id"], cached, strict=True))["scache_genai"] == 48_000
    assert dropped(draft) == {"the label 'pass' has no quality": 1, "the request failed": 1}
    assert any("--label pass=1" in warning for warning in draft.report.warnings)
    labelled = read_spans([CASES / "spans" / "spans.jsonl"], Given(labels={"pass": 1.0}))
    assert by_id(labelled, "text")["slabel"] == "labelled only"


def test_a_label_that_no_score_has_is_refused():
    observations, scores = LANGFUSE / "observations_v2.jsonl", LANGFUSE / "scores_boolean.jsonl"
    with pytest.raises(EvalSetError, match="'god': does not occur"):
        read_langfuse([observations], Given([scores], labels={"god": 1.0}))
