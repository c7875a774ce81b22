"""A collection against a fake server: outcomes, faults, kills, budget, and what is set aside."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hydra_core.base.errors import LabelError
from hydra_core.base.list_price import ListPrice
from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.decision_log.writer import LogWriter
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.lab.collect.graders import load_settings
from hydra_core.lab.collect.plan import (
    Cell,
    CollectPlan,
    answer_call,
    read_asked,
    sample_log,
    status_of,
)
from hydra_core.lab.labeling.config import JsonMode, Server
from tests.decision_log.test_log import record
from tests.lab.labeling import fake_server
from tests.lab.labeling.fake_server import FakeServer

CATALOG = CATALOGS / "matched_three.yaml"
SMALL, LARGE = "gpt-5-mini", "gpt-5"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(fake_server, "content", content)
    found = FakeServer()
    yield found
    found.shutdown()
    found.server_close()


def content(body, rubbish=False):
    """`large` is right, `small` on even numbers; the judge likes an answer that holds "right"."""
    if rubbish:
        return ""
    asked = body["messages"][-1]["content"]
    if body["model"] == "the-judge":
        return json.dumps({"score": 1.0 if "right" in json.loads(asked)["answer"] else 0.0})
    number = int(asked.split()[-1])
    good = body["model"] == "large-1" or number % 2 == 0
    return f"right: {2 * number}" if good else f"wrong: {2 * number + 1}"


@pytest.fixture
def files(tmp_path, server):
    """Messages, catalog, upstreams and grade.yaml for the fake server."""
    rows = [
        {"id": f"q{i:03d}", "text": f"Double the number {i}", "reference": str(2 * i), "lang": "en"}
        for i in range(20)
    ]
    (tmp_path / "messages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "upstreams.yaml").write_text(
        "schema: hydra.upstreams/v1\nupstreams:\n  - name: fake\n"
        f"    base_url: {server.url}\n    models: {{{SMALL}: small-1, {LARGE}: large-1}}\n"
    )
    grade(tmp_path, "default: number\ngraders:\n  number: {kind: number}\n")
    return tmp_path


def grade(folder, more, budget=100):
    text = f"schema: hydra.grade/v1\nbudget_usd: {budget}\nmax_tokens: 100\nconcurrency: 8\n{more}"
    (folder / "grade.yaml").write_text(text)


def judge_of(model, server):
    prices = "input_usd_per_mtok: 1, output_usd_per_mtok: 1"
    return f"judge: {{model: {model}, base_url: {server.url}, {prices}}}\n"


def command(files, out, *more):
    return [
        "collect", str(files / "messages.jsonl"), "--catalog", str(CATALOG),
        "--upstreams", str(files / "upstreams.yaml"), "--grade", str(files / "grade.yaml"),
        "--out", str(out), "--models", f"{SMALL},{LARGE}", *more,
    ]  # fmt: skip


def test_every_model_answers_every_message_once(files, server):
    assert main(command(files, files / "set")) == 0
    made = load_evalset(files / "set")
    assert made.models == (SMALL, LARGE)
    assert server.paid.total() == 40
    by_number = np.array([int(name[1:]) % 2 == 0 for name in made.query_ids])
    np.testing.assert_array_equal(made.quality[:, 1], 1.0)
    np.testing.assert_array_equal(made.quality[:, 0], by_number)
    catalog = load_catalog(CATALOG)
    for i, model in enumerate(map(catalog.model, (SMALL, LARGE))):
        usd = (120 * model.input_usd_per_mtok + 40 * model.output_usd_per_mtok) / 1e6
        np.testing.assert_allclose(made.cost_usd[:, i], usd)


def test_a_long_request_costs_the_price_of_its_length(files, server):
    long = (
        "    long_prompts: [{above_tokens: 100, input_usd_per_mtok: 3, output_usd_per_mtok: 20}]\n"
    )
    catalog, name = files / "catalog.yaml", f"  - id: {LARGE}\n"
    catalog.write_text(CATALOG.read_text().replace(name, name + long))
    asked = command(files, files / "set", "--models", LARGE)
    assert main([str(catalog) if one == str(CATALOG) else one for one in asked]) == 0
    made = load_evalset(files / "set")  # each reads 120 tokens and writes 40
    np.testing.assert_allclose(made.cost_usd, (120 * 3 + 40 * 20) / 1e6)
    assert made.prices == {LARGE: load_catalog(catalog).model(LARGE).price}


def test_a_second_run_pays_nothing(files, server):
    assert main(command(files, files / "set")) == 0
    assert main(command(files, files / "set", "--force")) == 0
    assert server.paid.total() == 40


def test_a_dry_run_asks_nothing(files, server, capsys):
    assert main(command(files, files / "set", "--dry-run")) == 0
    assert server.paid.total() == 0
    assert "40 answer; at most $0.0" in capsys.readouterr().err
    assert not (files / "set").exists()
    assert not (files / "set.collect").exists()
    grade(files, "graders:\n  words: {kind: contains}\n")  # a look binds to nothing
    assert main(command(files, files / "set")) == 0


def test_a_key_goes_where_its_upstream_says(files, server, monkeypatch):
    monkeypatch.setenv("A_KEY", "secret")
    upstreams = files / "upstreams.yaml"
    url = f"base_url: {server.url}\n"
    more = f"{url}    key_env: A_KEY\n"
    usual = upstreams.read_text().replace(url, more)
    upstreams.write_text(usual)
    assert main(command(files, files / "set", "--sample", "1")) == 0
    assert server.headers["authorization"] == "Bearer secret"
    upstreams.write_text(usual.replace(more, f"{more}    key_header: x-api-key\n"))
    assert main(command(files, files / "other", "--sample", "1")) == 0
    assert server.headers["x-api-key"] == "secret"
    assert server.headers["authorization"] is None


def test_a_model_that_is_out_of_the_pool_is_not_asked(files, server, capsys):
    catalog, name = files / "catalog.yaml", f"  - id: {LARGE}\n"
    before, _, after = CATALOG.read_text().partition(name)
    after = after.replace("status: active", "status: disabled", 1)
    catalog.write_text(f"{before}{name}{after}")
    others = [model.id for model in load_catalog(CATALOG).models if model.id != LARGE]
    upstreams = files / "upstreams.yaml"
    served = ", ".join(f"{model}: small-1" for model in others)
    listed = f"models: {{{SMALL}: small-1, {LARGE}: large-1}}"
    upstreams.write_text(upstreams.read_text().replace(listed, f"models: {{{served}}}"))
    words = [str(catalog) if one == str(CATALOG) else one for one in command(files, files / "set")]
    at = words.index("--models")
    del words[at : at + 2]
    assert main(words) == 0
    assert load_evalset(files / "set").models == tuple(others)
    assert f"nothing is routed there: {LARGE} (--models" in capsys.readouterr().err


def test_a_sample_of_the_models_and_messages(files, server):
    assert main(command(files, files / "set", "--sample", "5", "--models", LARGE)) == 0
    made = load_evalset(files / "set")
    assert (made.models, len(made.query_ids)) == ((LARGE,), 5)
    assert server.paid.total() == 5


def test_a_judge_grades_blind_and_twice_where_asked(files, server):
    judge = judge_of("the-judge", server)
    grade(files, "default: j\ngraders:\n  j: {kind: judge, twice_share: 1.0}\n" + judge)
    assert main(command(files, files / "set")) == 0
    made = load_evalset(files / "set")
    np.testing.assert_array_equal(made.quality[:, 1], 1.0)
    assert made.quality[:, 0].sum() == 10
    assert server.paid.total() == 40 + 80


def test_a_rubric_says_what_is_good_and_the_form_of_a_grade_follows(files, server):
    (files / "rubric.md").write_text("Be strict about units.\n")
    judge = judge_of("the-judge", server)
    grade(files, "default: j\ngraders:\n  j: {kind: judge, rubric: rubric.md}\n" + judge)
    read = []
    usual = server.write

    def keep(body, rubbish):
        read.extend([body["messages"][0]["content"]] * (body["model"] == "the-judge"))
        return usual(body, rubbish)

    server.write = keep
    assert main(command(files, files / "set", "--sample", "1")) == 0
    assert read
    assert all(one.startswith("Be strict about units.\n\n") for one in read)
    assert all('Reply with a JSON object {"score": s}' in one for one in read)


def test_a_judge_reads_the_whole_conversation(files, server):
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "My number is 21"},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Double the number I gave, not 7"},
    ]
    (files / "messages.jsonl").write_text(json.dumps({"id": "a", "messages": turns}) + "\n")
    judge = judge_of("the-judge", server)
    grade(files, "default: j\ngraders:\n  j: {kind: judge}\n" + judge)
    read = []
    usual = server.write

    def keep(body, rubbish):
        read.extend([body["messages"][-1]["content"]] * (body["model"] == "the-judge"))
        return usual(body, rubbish)

    server.write = keep
    assert main(command(files, files / "set")) == 0
    assert len(read) == 2
    for asked in map(json.loads, read):
        assert asked["request"] == turns[-1]["content"]
        assert asked["conversation"] == [{one["role"]: one["content"]} for one in turns]


def test_a_model_that_is_called_judge_is_refused(files, server, capsys):
    upstreams = files / "upstreams.yaml"
    upstreams.write_text(upstreams.read_text().replace(SMALL, "judge"))
    (files / "prices.yaml").write_text("models: {judge: {input: 1, output: 2}}\n")
    more = "default: j\ngraders:\n  j: {kind: judge}\n" + judge_of("the-judge", server)
    grade(files, more)
    words = command(files, files / "set")
    words[words.index("--catalog") : words.index("--upstreams")] = ["--prices"]
    words.insert(words.index("--prices") + 1, str(files / "prices.yaml"))
    words[words.index("--models") + 1] = "judge"
    assert main(words) == 2
    assert "give the model another id" in capsys.readouterr().err


def test_a_judge_that_is_one_of_the_models_is_refused(files, server, capsys):
    judge = judge_of("large-1", server)
    grade(files, "default: j\ngraders:\n  j: {kind: judge}\n" + judge)
    assert main(command(files, files / "set")) == 2
    assert "one of the models" in capsys.readouterr().err


def test_a_budget_is_used_up_to_what_one_call_may_cost(files, server):
    price, server.delay_s = load_catalog(CATALOG).model(SMALL).price, 0.05
    budget = 20 * price.usd_of_one(120, 40) + price.usd_of_one(100, 100)
    words = command(files, files / "set", "--models", SMALL, "--budget", f"{budget:.6f}")
    assert main(words) == 0  # eight calls under way may cost more
    assert server.paid.total() == 20


def test_answers_that_may_be_cut_off_are_counted(files, server, capsys):
    server.usage = {"prompt_tokens": 120, "completion_tokens": 100}  # max_tokens
    assert main(command(files, files / "set")) == 0
    assert "20 answers of max_tokens, perhaps cut off" in capsys.readouterr().out


def test_the_budget_is_never_exceeded_and_what_was_paid_is_kept(files, server, capsys):
    assert main(command(files, files / "set", "--budget", "0.006")) == 1
    made = load_evalset(files / "set")
    assert np.nansum(made.cost_usd) <= 0.006
    assert np.isnan(made.quality).any()
    assert "is left" in capsys.readouterr().err


def test_what_could_not_be_graded_is_missing_with_its_reason(files, capsys):
    argv = json.dumps([sys.executable, "-c", "raise SystemExit(1)"])
    graders = f"graders:\n  c: {{kind: command, argv: {argv}}}\n  n: {{kind: number}}\n"
    grade(files, "default: c\n" + graders)
    rows = [json.loads(line) for line in (files / "messages.jsonl").read_text().splitlines()]
    for row in rows[:10]:
        row["grader"] = "n"
    (files / "messages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(command(files, files / "set", "--json")) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["models"][SMALL]["missing"] == {"the command ended with 1": 10}
    assert said["messages"] == 10


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("default: x\ngraders:\n  n: {kind: number}\n", "'x' is no grader"),
        ("graders:\n  n: {kind: nmber}\n", "did you mean"),
        ("graders:\n  n: {kind: judge}\n", "judge"),
        ("graders:\n  n: {kind: command}\n", "argv"),
        ("graders:\n  n: {kind: regex, pattern: '('}\n", "pattern"),
    ],
)
def test_a_wrong_grade_file_names_place_and_remedy(files, capsys, more, named):
    grade(files, more)
    assert main(command(files, files / "set")) == 2
    assert named in capsys.readouterr().err


def test_a_message_that_a_model_turns_down_is_set_aside_unpaid(files, server, capsys):
    assert main(command(files, files / "set", "--sample", "5")) == 0  # its settings are right
    capsys.readouterr()
    asked = load_evalset(files / "set").query_ids
    long = next(i for i in range(20) if f"q{i:03d}" not in asked)
    error = {"message": "Too long: 9000 tokens", "code": "context_length_exceeded"}
    server.refuse = lambda body: (
        (400, {"error": error}) if body["messages"][-1]["content"].endswith(f" {long}") else None
    )
    assert main(command(files, files / "all", "--run", str(files / "set.collect"), "--json")) == 0
    said = json.loads(capsys.readouterr().out)
    for model in (SMALL, LARGE):
        reason = f"{model}: answered 400 (context_length_exceeded)"
        assert said["models"][model]["missing"] == {reason: 1}
    assert status_of(files / "set.collect").spent_usd == pytest.approx(
        np.nansum(load_evalset(files / "all").cost_usd)
    )


def test_a_key_that_is_wrong_at_first_puts_nothing_in_doubt(files, server, capsys):
    server.refuse = lambda body: (401, {"error": {"message": "no such key"}})
    assert main(command(files, files / "set")) == 2
    assert "no such key (check its model, '" in capsys.readouterr().err
    server.refuse = lambda body: None
    assert main(command(files, files / "set")) == 0
    assert np.isfinite(load_evalset(files / "set").quality).all()


def test_a_server_that_asks_for_max_completion_tokens_gets_them(files, server):
    error = {"message": "Use 'max_completion_tokens' instead.", "code": "unsupported_parameter"}
    server.refuse = lambda body: (400, {"error": error}) if "max_tokens" in body else None
    assert main(command(files, files / "set")) == 0
    assert np.isfinite(load_evalset(files / "set").quality).all()


def collected(files, server, capsys, choices):
    """What collect says of each model, where each answers 1+1 by its own choice."""

    def write(body, rubbish):
        answer = {"choices": [choices[body["model"]]], "usage": server.usage}
        return json.dumps(answer).encode()

    server.write = write
    (files / "messages.jsonl").write_text('{"id": "a", "text": "1+1", "reference": 2}\n')
    assert main(command(files, files / "set", "--json")) == 0
    return json.loads(capsys.readouterr().out)["models"]


def test_an_answer_in_parts_is_read_and_one_without_text_says_how_it_ended(files, server, capsys):
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "It is 2"}]
    empty = {"message": {"content": ""}, "finish_reason": "length"}
    choices = {"large-1": {"message": {"content": parts}}, "small-1": empty}
    said = collected(files, server, capsys, choices)
    assert said[LARGE]["quality"] == 1.0
    reason = "answer: the answer is empty: it used up max_tokens, asked 1 time"
    assert said[SMALL]["missing"] == {reason: 1}


def test_thinking_that_used_up_max_tokens_is_no_answer(files, server, capsys):
    said = {"large-1": "<think>3?</think> 2", "small-1": "<think>1 and 1 is 2, or 3"}
    choices = {
        model: {"message": {"content": text}, "finish_reason": "length"}
        for model, text in said.items()
    }
    said = collected(files, server, capsys, choices)
    assert said[LARGE]["quality"] == 1.0
    assert said[SMALL]["quality"] is None
    assert [*said[SMALL]["missing"]][0].startswith("answer: the answer is empty: it used up max_")


@pytest.mark.parametrize("url", ["https://x.example/a.png", "data:image/png;base64," + "A" * 300])
def test_an_image_counts_as_the_most_that_one_is_billed_as(files, capsys, url):
    def most(*images):
        content = [{"type": "text", "text": "Double 1"}, *images]
        row = {"id": "a", "messages": [{"role": "user", "content": content}], "reference": "2"}
        (files / "messages.jsonl").write_text(json.dumps(row) + "\n")
        settings = load_settings(files / "grade.yaml")
        (message,) = read_asked(files / "messages.jsonl", settings)
        server = Server("m", "m", "", "", ListPrice(1.0, 1.0), 16, 1, False, JsonMode.NONE)
        cell = Cell(message, "m")
        return CollectPlan(settings, {"m": server}).most_usd(cell, answer_call(cell))

    image, other = (
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image", "source": url},
    )
    assert most(image, other) - most() == pytest.approx(2 * 50_000 / 1e6)


def test_messages_without_what_their_grader_needs_are_refused(files, capsys):
    (files / "messages.jsonl").write_text('{"id": "a", "text": "Double the number 1"}\n')
    assert main(command(files, files / "set")) == 2
    assert "needs a reference" in capsys.readouterr().err


@pytest.mark.slow
def test_faults_and_three_kills_change_nothing_and_nothing_is_paid_twice(files, server):
    assert main(command(files, files / "calm")) == 0
    server.paid.clear()
    server._memory = {}
    server.busy, server.broken, server.malformed = 0.05, 0.02, 0.01
    server.remembers, server.rubbish_once, server.delay_s = False, True, 0.02
    run = ["--run", str(files / "run")]
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-m", "hydra_core", *command(files, files / "rough", *run, "--force")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        target = server.paid.total() + 8
        while server.paid.total() < target and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert main(command(files, files / "rough", *run, "--force")) == 0
    assert server.paid_twice == 0
    calm, rough = load_evalset(files / "calm"), load_evalset(files / "rough")
    at = [calm.query_ids.index(name) for name in rough.query_ids]
    known = ~np.isnan(rough.quality)
    np.testing.assert_array_equal(rough.quality[known], calm.quality[at][known])
    assert main(command(files, files / "rough", *run, "--force", "--again")) == 0
    np.testing.assert_array_equal(load_evalset(files / "rough").quality, calm.quality)


def test_a_sample_of_a_log_is_asked_and_stays_the_same_when_the_log_grows(files, server, capsys):
    log = LogWriter(files / "log")
    for number in range(60):
        served = SMALL if number % 3 else LARGE
        text = f"Double the number {number % 50}"  # ten texts come twice
        more = {"text": text, "served": served, "requirements": (number / 60, 0.1)}
        context = "U: hello\nA: hi\n" if number == 7 else None
        gates = {"needs_tools": number < 30, "deny": ("x",) if number > 30 else ()}
        log.add(record(number, context=context, **gates, **more))
    log.close()
    sampled = sample_log(files / "log", files / "all.jsonl", 100)
    assert sampled == 50
    rows = [json.loads(line) for line in (files / "all.jsonl").read_text().splitlines()]
    assert [row for row in rows if row["id"] == "d7"][0]["messages"] == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": "Double the number 7"},
    ]
    grade(files, "graders:\n  even: {kind: regex, pattern: '[02468]$'}\n")
    words = command(files, files / "set", "--from-log", str(files / "log"), "--sample", "12")
    words.remove(str(files / "messages.jsonl"))
    assert main(words) == 0
    first = load_evalset(files / "set")
    places = [int(name[1:]) for name in first.query_ids]
    assert first.n == 12
    assert first.queries["needs_tools"].tolist() == [place < 30 for place in places]
    assert first.queries["deny"].tolist() == ["x" if place > 30 else "" for place in places]
    assert {0, 1} == {place % 3 > 0 for place in places}
    assert min(places) < 15
    assert max(places) > 35
    more = LogWriter(files / "log")
    more.add(record(99, text="Double the number 99", served=SMALL))
    more.close()
    paid = server.paid.total()
    assert main([*words, "--force"]) == 0
    assert (load_evalset(files / "set").query_ids, server.paid.total()) == (first.query_ids, paid)


def test_outcomes_that_look_wrong_are_said(files, server, capsys):
    rows = [{"id": f"q{i}", "text": f"Double the number {i}", "reference": "nothing"}
            for i in range(25)]  # fmt: skip
    (files / "messages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    grade(files, "graders:\n  same: {kind: exact}\n")
    assert main(command(files, files / "set")) == 0
    assert "its grader may be broken" in capsys.readouterr().out


def test_batch_files_are_another_way_to_ask(files, server, capsys):
    words = command(files, files / "set")
    assert main([*words, "--write-batch"]) == 0
    asked = sorted((files / "set.collect").glob("batch-*.jsonl"))
    assert [path.name for path in asked] == [f"batch-{SMALL}-1.jsonl", f"batch-{LARGE}-1.jsonl"][
        ::-1
    ]
    assert "count batches at the list price" in capsys.readouterr().err
    results = []
    for path in asked:
        for line in path.read_text().splitlines():
            request = json.loads(line)
            said = {"choices": [{"message": {"content": content(request["body"])}}],
                    "usage": {"prompt_tokens": 10, "completion_tokens": 5}}  # fmt: skip
            response = {"status_code": 200, "body": said}
            results.append(json.dumps({"custom_id": request["custom_id"], "response": response}))
    (files / "output.jsonl").write_text("\n".join(results) + "\n")
    assert main([*words, "--read-batch", str(files / "output.jsonl")]) == 0
    made = load_evalset(files / "set")
    assert server.paid.total() == 0
    assert made.quality.mean(axis=0).tolist() == [0.5, 1.0]
    assert np.isfinite(made.extras["output_tokens"]).all()
    assert "latency_s" not in made.extras  # nobody measured it
    grade(files, "graders:\n  number: {kind: number}\n", budget=0.0001)
    assert main([*command(files, files / "other"), "--write-batch"]) == 1
    assert "may cost up to" in capsys.readouterr().err


def test_costs_are_at_the_prices_that_the_set_states(files, server):
    assert main(command(files, files / "set")) == 0
    catalog = files / "catalog.yaml"
    price = load_catalog(CATALOG).model(LARGE).input_usd_per_mtok
    old = f"input_usd_per_mtok: {price:g}"
    before, _, after = CATALOG.read_text().partition(f"  - id: {LARGE}\n")
    catalog.write_text(f"{before}  - id: {LARGE}\n{after.replace(old, 'input_usd_per_mtok: 9', 1)}")
    words = [str(catalog) if one == str(CATALOG) else one for one in command(files, files / "set")]
    assert main([*words, "--force"]) == 0
    made = load_evalset(files / "set")
    assert made.prices[LARGE].input_usd_per_mtok == 9
    np.testing.assert_allclose(made.cost_usd[:, 1], made.prices[LARGE].usd(120, 40))
    assert server.paid.total() == 40


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"text": ""}, "line 1: has no text"),
        ({"text": "Double 2", "messages": [{"role": "user", "content": "Double 1"}]},
         "text is not the last user message"),
    ],
)  # fmt: skip
def test_messages_of_which_no_set_could_be_made_are_refused_unpaid(
    files, server, capsys, row, named
):
    row = {"id": "a", "reference": "2", **row}
    (files / "messages.jsonl").write_text(json.dumps(row) + "\n")
    assert main(command(files, files / "set")) == 2
    assert named in capsys.readouterr().err
    assert server.paid.total() == 0


def test_a_set_that_is_there_is_refused_before_anything_is_paid(files, server, capsys):
    assert main(command(files, files / "set", "--sample", "5")) == 0
    paid = server.paid.total()
    assert main(command(files, files / "set")) == 2
    assert "--force" in capsys.readouterr().err
    assert server.paid.total() == paid


def test_groups_that_are_numbers_are_kept(files, server):
    rows = [
        {"id": f"q{i}", "text": f"Double {i}", "reference": 2 * i,
         "group": i % 2, "cluster": i // 2, "conversation_id": i}
        for i in range(4)
    ]  # fmt: skip
    (files / "messages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(command(files, files / "set")) == 0
    found = load_evalset(files / "set").queries
    assert found["group"].tolist() == ["0", "1", "0", "1"]
    assert found["cluster"].tolist() == ["0", "0", "1", "1"]
    assert found["conversation_id"].tolist() == ["0", "1", "2", "3"]


def test_a_model_or_grader_that_comes_later_pays_for_what_is_missing(files, server, capsys):
    assert main(command(files, files / "set", "--models", SMALL)) == 0
    assert server.paid.total() == 20
    words = command(files, files / "set", "--force")
    assert main(words) == 0
    assert server.paid.total() == 40
    grade(files, "graders:\n  words: {kind: contains}\n")
    assert main([*words, "--models", LARGE]) == 0
    assert load_evalset(files / "set").models == (LARGE,)
    grade(files, "default: j\ngraders:\n  j: {kind: judge}\n" + judge_of("the-judge", server))
    assert main(words) == 0
    assert server.paid.total() == 80
    path = files / "grade.yaml"
    path.write_text(path.read_text().replace("max_tokens: 100", "max_tokens: 200"))
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"has answers of {SMALL}, {LARGE}, which had other settings then" in said
    assert server.paid.total() == 80


def test_turn_image_and_language_of_a_message_stand_in_the_set(files, server):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    seen = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
    asked = [seen, {"role": "assistant", "content": "A number"},
             {"role": "user", "content": "Double the number 2"}]  # fmt: skip
    rows = [
        {"id": "a", "text": "Double the number 1", "reference": "2", "lang": "en-US"},
        {"id": "b", "messages": asked, "reference": "4"},
    ]
    path = files / "messages.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(command(files, files / "set")) == 0
    found = load_evalset(files / "set").queries
    assert found["language"].tolist()[0] == "en"
    assert found["turn"].tolist() == [1, 2]
    assert found["has_image"].tolist() == [False, True]
    path.write_text(json.dumps({**rows[0], "lang": "English"}) + "\n")
    with pytest.raises(LabelError, match="line 1: lang 'English' is not a code"):
        read_asked(path, load_settings(files / "grade.yaml"))


def test_messages_of_a_spreadsheet_are_read_with_its_delimiter_and_its_lines(tmp_path):
    grade(tmp_path, "default: number\ngraders:\n  number: {kind: number}\n")
    settings, path = load_settings(tmp_path / "grade.yaml"), tmp_path / "messages.csv"
    path.write_text('id;text;reference\nq1;"Double it;\nhere is 1";2\nq2;Double the number 2;4\n')
    found = read_asked(path, settings)
    assert [(one.id, one.text) for one in found] == [
        ("q1", "Double it;\nhere is 1"), ("q2", "Double the number 2"),
    ]  # fmt: skip
    path.write_text('id;text;reference\nq1;"Double it;\nhere is 1";2\nq2;Double the number 2;\n')
    with pytest.raises(LabelError, match="line 4"):
        read_asked(path, settings)
    for heading, lacks in (("ID;text", "no id, only ID"), ("id;Text", "neither text nor")):
        path.write_text(f"{heading};reference\nq1;1+1;2\n")
        with pytest.raises(LabelError, match=f"line 2: has {lacks}"):
            read_asked(path, settings)
    path.write_text("id;text;reference\nq1;1+1;two\n")
    with pytest.raises(LabelError, match="line 2: grader 'number' cannot grade it: the reference"):
        read_asked(path, settings)


def test_ids_that_are_numbers_are_texts(tmp_path):
    grade(tmp_path, "default: number\ngraders:\n  number: {kind: number}\n")
    settings, path = load_settings(tmp_path / "grade.yaml"), tmp_path / "messages.jsonl"
    path.write_text('{"id": 7, "text": "1+1", "reference": 2}\n')
    assert [one.id for one in read_asked(path, settings)] == ["7"]
    path.write_text('{"id": true, "text": "1+1", "reference": 2}\n')
    with pytest.raises(LabelError, match="id must be text"):
        read_asked(path, settings)


def test_messages_of_other_tables_and_in_cells_are_read(tmp_path):
    grade(tmp_path, "default: number\ngraders:\n  number: {kind: number}\n")
    settings, path = load_settings(tmp_path / "grade.yaml"), tmp_path / "messages.md"
    path.write_text("| id | text | reference |\n|---|---|---|\n| q1 | Double 1 | 2 |\n")
    assert [one.text for one in read_asked(path, settings)] == ["Double 1"]
    path = tmp_path / "messages.tsv"
    turns = [{"role": "user", "content": who} for who in ("Hi", "Double 1")]
    path.write_text(f"id\tmessages\treference\nq1\t{json.dumps(turns)}\t2\n".replace('"', "'"))
    with pytest.raises(LabelError, match="line 2: text or messages cannot be read"):
        read_asked(path, settings)
    cell = json.dumps(turns).replace('"', '""')
    path.write_text(f'id\tmessages\treference\nq1\t"{cell}"\t2\n')
    (found,) = read_asked(path, settings)
    assert found.turns == tuple(turns)
