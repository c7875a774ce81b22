"""Choices among models and tiers, asked by the clients of both forms."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from systemone import Choice, Client, Noul
from systemone.client import SystemOneError

from hydra_core.decision_log.reading import read_log
from tests.server.conftest import EASY, HARD, MODELS, asked, wait_for

PAGE = Path("docs/guide/decisions.md").read_text()
TIERS = {"SIMPLE": "cheap", "MEDIUM": None, "COMPLEX": "strong"}


@pytest.fixture
def service(make, tmp_path):
    return make(upstreams="", log=str(tmp_path / "log"))


def chosen(service, text, **hydra):
    return service.post("/v1/decision", json=asked(text, hydra=hydra)).json()["model"]


@pytest.mark.parametrize("text", [EASY, HARD])
def test_a_choice_among_models_is_hydras_own(service, text):
    two = [MODELS[0], MODELS[4]]
    with Client(str(service.base_url)) as client:
        every = client.system_one(text, {"model": Choice("Which?", dict.fromkeys(MODELS))})
        some = client.system_one(text, {"model": Choice("Which?", dict.fromkeys(two))})
    assert every.choices["model"].choice == chosen(service, text)
    assert every.choices["model"].probabilities[chosen(service, text)] == 1.0
    assert some.choices["model"].choice == chosen(service, text, allow=two)
    assert set(some.choices["model"].probabilities) == set(two)
    assert every.usage.input_tokens > 0


@pytest.mark.parametrize("text", [EASY, HARD])
def test_tiers_are_equal_parts_of_the_pool_in_cost_order(service, text):
    with Client(str(service.base_url)) as client:
        answer = client.system_one(text, {"tier": Choice("Which?", TIERS)}).choices["tier"]
    rank = MODELS.index(chosen(service, text))  # the catalog lists them cheapest first
    assert answer.choice == list(TIERS)[rank * 3 // len(MODELS)]
    assert answer.probabilities == {**dict.fromkeys(TIERS, 0.0), answer.choice: 1.0}
    assert answer.confidence == 1.0


def test_the_openai_client_gets_answers_in_order_and_a_refusal(service, tmp_path):
    import openai  # slow: not while collecting

    models = [{"value": name} for name in MODELS]
    questions = [
        {"type": "predicate", "name": "hard", "instructions": "Is it hard?"},
        {"type": "choice", "name": "model", "instructions": "Which?", "choices": models},
    ]
    said = [{"role": "developer", "content": "Be short."}, {"role": "user", "content": HARD}]
    url = f"{str(service.base_url).rstrip('/')}/v1"
    with openai.OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        found = client.decisions.create(model="hydra", input=said, questions=questions)
    refused, answer = found.answers
    assert (refused.type, refused.name) == ("refusal", "hard")
    assert (answer.name, answer.choice) == ("model", chosen(service, HARD))
    assert sum(one.probability for one in answer.probabilities) == 1.0
    assert found.usage.total_tokens == found.usage.input_tokens > 0
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 2)  # ours, and `chosen`'s


def test_messages_and_litellms_system_prompt_are_no_part_of_what_is_scored(service):
    plain = {"state": EASY}
    long = f"System prompt:\n{HARD}\n\nRequest:\n{EASY}"
    recent = f"\nRecent conversation (context only):\n[1] {HARD}\n\nClassify this message:\n{EASY}"
    messages = [{"role": "system", "content": HARD}, {"role": "user", "content": EASY}]
    tier = {"tier": {"type": "choice", "criteria": TIERS}}
    answers = []
    states = ({"state": one} for one in (long, recent, messages, {"messages": messages}))
    for state in (plain, *states):
        found = service.post("/v1/systemone", json={**state, "questions": tier}).json()
        answers.append(found["answers"])
    assert answers == [answers[0]] * 5


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("systemone", {"state": "x", "questions": {}}, "must hold 1 to 16 entries"),
        (
            "systemone",
            {"state": "x", "questions": {"q": {"type": "choice", "criteria": {"a": ""}}}},
            "2 to 255 different options",
        ),
        *(
            (
                "systemone",
                {"state": "x", "questions": {"q": {"type": "choice", "criteria": wrong}}},
                "2 to 255 different options",
            )
            for wrong in (5, "ab", None)
        ),
        (
            "systemone",
            {
                "state": "x",
                "questions": {"q": {"type": "choice", "criteria": {"gpt-5.4": "", "o": ""}}},
            },
            "'o' is no model of the catalog",
        ),
        ("decisions", {"input": "x", "questions": [{"type": "choice"}]}, "choices: must hold"),
        (
            "decisions",
            {"questions": [{"type": "choice", "choices": [{"value": "a"}, {"value": "b"}]}]},
            "no user message",
        ),
    ],
)
def test_a_question_that_cannot_be_answered_is_told_why(service, path, body, told):
    answer = service.post(f"/v1/{path}", json=body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]


def test_another_question_than_a_choice_is_refused_by_the_client_as_well(service):
    refused = pytest.raises(SystemOneError, match="routing answers nothing else")
    with Client(str(service.base_url)) as client, refused:
        client.system_one("x", {"q": Noul("Is it?")})


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_pages_examples_are_answered(service):
    blocks = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        script = block.replace("http://127.0.0.1:8600", str(service.base_url).rstrip("/"))
        done = subprocess.run(["bash", "-ec", script], capture_output=True, check=False)
        assert done.returncode == 0, (block, done.stderr)
        assert b'"choice"' in done.stdout
