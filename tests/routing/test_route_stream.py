"""JSONL in, JSONL out: one answer a line, whatever the line holds."""

import io
import json
import sys

import pytest

from hydra_core.cli.route import route_stream
from hydra_core.routing.decision import redecide
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions
from tests.routing.conftest import Scores, make_catalog, spec


@pytest.fixture
def stream(monkeypatch, capsys):
    """Runs lines (objects, or bytes as they are) through a fresh router: exit code, answers."""

    def run(*lines, level=0.1, receipts=False, catalog=None):
        raw = [x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(raw))))
        router = Router(catalog or make_catalog(), Scores(level), sessions=MemorySessions())
        code = route_stream(router, receipts=receipts)
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_answers_come_in_order_with_their_ids(stream):
    code, answers = stream({"id": "a", "text": "x"}, b"", {"id": 2, "text": "y"})
    assert code == 0
    assert [answer["id"] for answer in answers] == ["a", 2]
    assert all(answer["model"] == "cheap" for answer in answers)
    assert set(answers[0]["requirements"]) == {
        "reasoning", "code_generation", "debugging", "tool_use",
    }  # fmt: skip


def test_a_receipt_alone_leads_to_the_same_model(stream):
    _, (answer,) = stream({"text": "x"}, level=0.6, receipts=True)
    assert redecide(answer["receipt"]) == answer["model"] == "strong"


def test_conversations_keep_their_model_with_or_without_numbered_turns(stream):
    _, answers = stream(
        {"text": "x", "conversation_id": "c"},
        {"text": "y", "conversation_id": "c"},
        {"text": "y", "conversation_id": "d", "turn": 1},
        {"text": "y", "conversation_id": "d", "turn": 2},
    )
    causes = [answer["cause"] for answer in answers]
    assert causes == ["cheapest_eligible", "kept_by_session"] * 2


def test_what_no_model_can_serve_is_answered_and_the_stream_goes_on(stream):
    code, answers = stream({"text": "x", "has_image": True}, {"text": "y"})
    assert code == 0
    assert answers[0]["http_status"] == 400
    assert answers[1]["model"] == "cheap"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"nonsense", "not JSON"),
        (b"[1, 2]", "must be an object"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 50_000, "not JSON"),
        (b'{"id": 7}', 'neither of "text"'),
        ({"text": 5}, '"text" must be a text'),
        ({"text": "x", "hasimage": True}, "did you mean"),
        ({"text": "x", "has_image": "yes"}, "true or false"),
        ({"text": "x", "turn": 0}, "from 1"),
        ({"text": "x", "turn": True}, "from 1"),
        ({"text": "x", "deny": "cheap"}, "list of model ids"),
        ({"text": "x", "health": {"cheap": "ill"}}, "numbers in"),
        (b'{"text": "x", "id": 1e999}', "whole number"),
        (b'{"text": "x", "id": NaN}', "whole number"),
        (b'{"text": "' + b"x" * (17 << 20) + b'"}', "longer than 16 MiB"),
    ],
)
def test_a_line_that_is_not_valid_is_told_with_its_number(stream, line, told):
    code, answers = stream({"text": "first"}, line, {"text": "last"})
    assert code == 2
    assert "line 2" in answers[1]["error"]
    assert told in answers[1]["error"]
    assert len(answers[1]["error"]) < 400
    assert answers[2]["model"] == "cheap"


@pytest.mark.parametrize("health", [b"NaN", b"Infinity", b"-1", b"2"])
def test_a_wrong_health_is_an_error_line_and_a_failed_run(stream, health):
    code, (answer,) = stream(b'{"text": "x", "health": {"cheap": ' + health + b"}}")
    assert code == 2
    assert "health" in answer["error"]


def test_a_text_says_what_it_needs_as_messages_do(stream):
    deaf = make_catalog(spec("cheap", 1, 0.2, lacks=frozenset({"audio"})))
    _, answers = stream({"text": "x", "needs": ["audio"]}, {"text": "y"}, catalog=deaf)
    assert answers[0]["http_status"] == 400
    assert "audio" in answers[0]["error"]
    assert answers[1]["model"] == "cheap"


def test_declared_tools_must_fit_the_window_as_in_serve(stream):
    small = make_catalog(spec("cheap", 1, 0.2, context_window=1_000))
    line = {"messages": [{"role": "user", "content": "x"}]}
    _, answers = stream(line, {**line, "tools": ["x" * 8_000]}, catalog=small)
    assert answers[0]["model"] == "cheap"
    assert "Context window 1,000 is smaller than the 2,00" in answers[1]["error"]


def test_half_characters_pass_through(stream):
    code, answers = stream(b'{"id": "\\ud800", "text": "\\udfff \\u0000"}')
    assert code == 0
    assert answers[0]["id"] == "\ud800"
