"""A run against a fake server: faults, kills, budget, batches, and what an operator already has."""

import json
import signal
import subprocess
import sys
import time

import pytest

from hydra_core.base.errors import LabelError
from hydra_core.base.types import DIMENSIONS
from hydra_core.cli.main import main
from hydra_core.lab.labeling.calls import ORDERS
from hydra_core.lab.labeling.config import load_config
from hydra_core.lab.labeling.ledger import Call, Ledger
from tests.lab.labeling.fake_server import messages, settings


def label(files, out, *more):
    return main(
        ["lab", "label", str(files[0]), "--config", str(files[1]), "--out", str(out), *more]
    )


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_labels_are_the_gap_of_the_mean_scores_over_five(files, tmp_path):
    assert label(files, tmp_path / "out") == 0
    config = load_config(files[1])
    with Ledger(tmp_path / "out" / "ledger.jsonl", config.recipe) as ledger:
        record = ledger.record
    for row in rows(tmp_path / "out" / "labels.jsonl"):
        verdicts = [record.answered[Call(row["id"], "judge", order)] for order in ORDERS]
        for k, name in enumerate(config.dimensions):
            gaps = [v["strong"][k] - v["cheap"][k] for v in verdicts]
            assert row[name] == pytest.approx(max(0.0, sum(gaps) / 2) / 5, abs=1e-6)


def test_faults_change_nothing_but_the_waiting(files, server, tmp_path):
    assert label(files, tmp_path / "calm") == 0
    server.busy, server.broken, server.malformed, server._memory = 0.1, 0.05, 0.05, {}
    server.rubbish_once = True
    assert label(files, tmp_path / "rough") == 0
    assert server._spoilt
    assert server.statuses[429]
    assert server.statuses[500] + server.statuses[502] + server.statuses[503]
    calm, rough = ((tmp_path / name / "labels.jsonl").read_text() for name in ("calm", "rough"))
    assert calm == rough


@pytest.mark.slow
@pytest.mark.parametrize("remembers", [True, False])
def test_a_killed_run_goes_on_and_pays_nothing_twice(files, server, tmp_path, remembers):
    assert label(files, tmp_path / "calm") == 0
    server.paid.clear()
    server._memory = {}
    server.remembers, server.delay_s = remembers, 0.02
    files[1].write_text(settings(server.url, honours=str(remembers).lower()))
    out = tmp_path / "killed"
    for _ in range(3):
        kill_midway(files, out, server)
    assert label(files, out) == 0
    assert server.paid_twice == 0
    calm = {row["id"]: row for row in rows(tmp_path / "calm" / "labels.jsonl")}
    found = {row["id"]: row for row in rows(out / "labels.jsonl")}
    aside = {row["id"]: row["reason"] for row in rows(out / "set_aside.jsonl")}
    assert all(found[name] == calm[name] for name in found)
    assert found.keys() | aside.keys() == calm.keys()
    assert not found.keys() & aside.keys()
    assert (len(aside) == 0) == remembers
    assert all("may have been paid" in reason for reason in aside.values())
    assert label(files, out, "--again") == 0
    assert (out / "labels.jsonl").read_text() == (tmp_path / "calm" / "labels.jsonl").read_text()


def kill_midway(files, out, server):
    """Start the verb, wait until it has been answered a few times more, and kill -9 it."""
    command = [sys.executable, "-m", "hydra_core", "lab", "label", str(files[0]), "--config"]
    process = subprocess.Popen(
        [*command, str(files[1]), "--out", str(out)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    target = server.paid.total() + 15
    while server.paid.total() < target and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_the_budget_is_never_passed_and_raising_it_goes_on(files, server, tmp_path, capsys):
    files[1].write_text(settings(server.url, budget=0.02))
    out = tmp_path / "out"
    assert label(files, out) == 1
    assert "raise budget_usd" in capsys.readouterr().err
    spent = json.loads((out / "quality.json").read_text())["spent_usd"]
    assert 0.005 < sum(spent.values()) <= 0.02
    paid = server.paid.total()
    files[1].write_text(settings(server.url, budget=5))
    assert label(files, out) == 0
    assert len(rows(out / "labels.jsonl")) == 40
    assert server.paid.total() == 160 > paid
    assert server.paid_twice == 0


def test_what_stays_malformed_is_set_aside_with_the_reason(files, server, tmp_path):
    server.malformed = 1.0
    files[0].write_text(messages(2))
    server._memory = {}
    assert label(files, tmp_path / "out") == 0
    aside = rows(tmp_path / "out" / "set_aside.jsonl")
    assert [row["id"] for row in aside] == ["m00000", "m00001"]
    assert all("the answer is empty, asked 3 times" in row["reason"] for row in aside)
    assert rows(tmp_path / "out" / "labels.jsonl") == []


def test_what_was_set_aside_as_malformed_is_asked_again(files, server, tmp_path, capsys):
    server.malformed = 1.0
    files[0].write_text(messages(2))
    assert label(files, tmp_path / "out") == 0
    server.malformed = 0.0
    assert label(files, tmp_path / "out", "--again") == 0
    assert "2 messages that were set aside are asked again" in capsys.readouterr().err
    assert len(rows(tmp_path / "out" / "labels.jsonl")) == 2


def test_a_refused_key_stops_the_run_and_names_the_setting(files, tmp_path, monkeypatch, capsys):
    files[1].write_text(files[1].read_text() + "    api_key_env: NO_SUCH_KEY\n")
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    assert label(files, tmp_path / "out") == 2
    assert "servers.judge.api_key_env: $NO_SUCH_KEY is not set" in capsys.readouterr().err


def test_messages_that_need_a_repository_get_the_default(files, server, tmp_path):
    lines = [
        {"id": "a", "text": "fix the bug in src/app/main.py", "lang": "en"},
        {"id": "b", "text": "proceed", "lang": "en"},
        {"id": "c", "text": "What does git stash do?", "lang": "en"},
    ]
    files[0].write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert label(files, tmp_path / "out") == 0
    found = rows(tmp_path / "out" / "labels.jsonl")
    assert [row["tier"] for row in found] == [1, 2, 3]
    assert [row["label_source"] for row in found] == ["synthetic_default"] * 2 + ["judge"]
    assert found[0]["reasoning"] == found[1]["tool_use"] == 0.8
    assert server.paid.total() == 4


def test_answers_and_verdicts_of_ones_own_cost_nothing(files, server, tmp_path):
    files[0].write_text(messages(2))
    scores = {arm: dict.fromkeys(DIMENSIONS, s) for arm, s in (("cheap", 2), ("strong", 4))}
    answers = [{"id": f"m0000{i}", "cheap": "x", "strong": "y"} for i in range(2)]
    verdicts = [{"id": "m00000", "order": order, **scores} for order in ORDERS]
    for name, lines in (("a.jsonl", answers), ("v.jsonl", verdicts)):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ("--answers", str(tmp_path / "a.jsonl"), "--judgements", str(tmp_path / "v.jsonl"))
    assert label(files, tmp_path / "out", *given) == 0
    assert server.paid.total() == 2  # the other message's two verdicts
    assert rows(tmp_path / "out" / "labels.jsonl")[0]["debugging"] == 0.4


def test_batch_files_give_the_same_labels(files, server, tmp_path):
    assert label(files, tmp_path / "calls") == 0
    out = tmp_path / "batch"
    for _ in range(2):  # answers first, then verdicts
        assert label(files, out, "--write-batch") == 0
        done = []
        for path in sorted(out.glob("batch-*.jsonl")):
            for request in rows(path):
                status, body = server.respond(request["custom_id"], request["body"])
                response = {"status_code": status, "body": body}
                done.append({"custom_id": request["custom_id"], "response": response})
            path.unlink()
        (tmp_path / "done.jsonl").write_text("".join(json.dumps(row) + "\n" for row in done))
        for _ in range(2):  # reading twice changes nothing
            assert label(files, out, "--read-batch", str(tmp_path / "done.jsonl")) == 0
    assert (out / "labels.jsonl").read_text() == (tmp_path / "calls/labels.jsonl").read_text()


def test_another_rubric_needs_another_folder(files, tmp_path):
    files[0].write_text(messages(1))
    assert label(files, tmp_path / "out") == 0
    (tmp_path / "rubric.md").write_text("Be kind.")
    files[1].write_text("rubric: rubric.md\n" + files[1].read_text())
    with pytest.raises(LabelError, match="another rubric"):
        Ledger(tmp_path / "out" / "ledger.jsonl", load_config(files[1]).recipe)


def test_settings_may_change_after_a_dry_run(files, tmp_path, capsys):
    files[0].write_text(messages(1))
    assert label(files, tmp_path / "out", "--dry-run") == 0
    (tmp_path / "rubric.md").write_text("Be kind.")
    files[1].write_text("rubric: rubric.md\n" + files[1].read_text())
    assert label(files, tmp_path / "out", "--write-batch") == 0
    (tmp_path / "rubric.md").write_text("Be strict.")
    assert label(files, tmp_path / "out") == 2  # the files of requests are of the other rubric
    assert "restore the settings" in capsys.readouterr().err


def test_a_changed_text_under_an_old_id_is_refused(files, tmp_path, capsys):
    files[0].write_text(messages(1))
    assert label(files, tmp_path / "out") == 0
    files[0].write_text(files[0].read_text().replace("sorts", "shuffles"))
    assert label(files, tmp_path / "out") == 2
    assert "have changed since they were asked: m00000" in capsys.readouterr().err
