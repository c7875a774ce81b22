"""A run looked at from outside: what it was begun with, how far it is; nothing is written."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest

from hydra_core.base.errors import LabelError
from hydra_core.cli.main import main
from hydra_core.lab.labeling.config import load_config
from hydra_core.lab.labeling.ledger import Call, Ledger, Tail
from hydra_core.lab.labeling.messages import read_messages
from hydra_core.lab.labeling.quality import quality, quality_text
from hydra_core.lab.labeling.run_folder import LEDGER, TrackedRun, list_runs, read_setup
from tests.lab.labeling.fake_server import settings


def label(files, out, *more):
    return main(
        ["lab", "label", str(files[0]), "--config", str(files[1]), "--out", str(out), *more]
    )


@pytest.fixture
def checked(files, server, tmp_path):
    """A finished run with A/A verdicts."""
    files[1].write_text(settings(server.url, stability_share=0.5))
    assert label(files, tmp_path / "runs" / "one") == 0
    return tmp_path / "runs" / "one"


def test_the_settings_come_back_as_they_were(checked, files):
    setup = read_setup(checked)
    assert setup.config == load_config(files[1])
    assert setup.config.recipe == load_config(files[1]).recipe
    assert [m.id for m in setup.messages] == [m.id for m in read_messages(files[0])]
    assert "sorts a list" not in (checked / "run.json").read_text()


def test_the_figures_from_outside_are_those_of_the_verb(checked):
    assert list_runs(checked.parent) == (checked,)
    run = TrackedRun(checked)
    found = json.loads((checked / "quality.json").read_text())
    assert run.quality()["dimensions"] == found["dimensions"]
    assert run.quality()["stability"]["n"] == found["stability"]["n"] > 0
    seen = run.status()
    assert (seen.running, seen.labelled, seen.waiting, seen.calls) == (False, 40, 0, {})
    assert sum(seen.spent_usd.values()) == pytest.approx(sum(found["spent_usd"].values()))


def test_a_run_under_way_is_followed_and_nothing_is_written(files, tmp_path):
    out = tmp_path / "out"
    assert label(files, out, "--dry-run") == 0
    began = read_setup(out).began
    run = TrackedRun(out, clock=lambda: began + timedelta(seconds=10))
    config, messages = load_config(files[1]), read_messages(files[0])
    assert run.status().waiting == 40
    with Ledger(out / LEDGER, config.recipe) as ledger:
        for message in messages[:10]:
            for stage in ("cheap", "strong"):
                call = Call(message.id, stage)
                ledger.add("answered", call, cost_usd=0.01, tokens=[], content="long" * 99)
            scores = {"cheap": [2, 2, 2, 2], "strong": [4, 4, 4, 4], "winner": "strong"}
            for order in ("cheap_first", "strong_first"):
                call = Call(message.id, "judge", order)
                ledger.add("answered", call, cost_usd=0.01, tokens=[], content=scores)
        ledger.add("aside", Call(messages[10].id, "judge"), reason="it said nothing")
        before = (out / LEDGER).read_bytes()
        seen = run.status()
        assert (out / LEDGER).read_bytes() == before
        assert (seen.running, seen.labelled, seen.aside, seen.waiting) == (True, 10, 1, 29)
        assert seen.left_s == pytest.approx(29 * 10 / 11)
        assert seen.calls == {"cheap": 29, "strong": 29, "judge": 58}
        assert [(m.id, why) for m, why in run.aside()] == [(messages[10].id, "it said nothing")]
        assert run.quality()["dimensions"] == quality(config, messages, ledger.record)["dimensions"]
    assert run.status().running is False


def test_a_line_that_is_only_half_written_waits(tmp_path):
    path = tmp_path / LEDGER
    with Ledger(path, "r") as ledger:
        ledger.add("aside", Call("a", "judge"), reason="one")
        whole = path.read_bytes()
        ledger.add("aside", Call("b", "judge"), reason="two")
    both = path.read_bytes()
    path.write_bytes(both[: len(whole) + 40])
    tail = Tail(path)
    assert tail.read() == len(whole)
    assert set(tail.record.aside) == {"a"}
    path.write_bytes(both)
    tail.read()
    assert set(tail.record.aside) == {"a", "b"}


def test_a_folder_that_cannot_be_read_says_how_to_mend_it(checked, files, server):
    kept = (checked / "run.json").read_text()
    (checked / "run.json").unlink()
    with pytest.raises(LabelError, match="run.json: is not there.*--dry-run"):
        TrackedRun(checked).status()
    (checked / "run.json").write_text(kept[:200])
    with pytest.raises(LabelError, match="run.json: is damaged.*--dry-run"):
        TrackedRun(checked).status()
    (checked / "run.json").write_text(
        kept.replace('"stability_share": 0.5', '"stability_share": 0.1')
    )
    with pytest.raises(LabelError, match="different settings"):
        TrackedRun(checked).status()
    assert label(files, checked, "--dry-run") == 0
    assert TrackedRun(checked).status().labelled == 40
    assert read_setup(checked).began <= datetime.now(UTC)


def test_one_message_has_figures_without_intervals(checked):
    found = json.loads((checked / "quality.json").read_text())
    alone = {"value": 0.5, "lo": math.nan, "hi": math.nan}
    bias = {"n": 1, "first_minus_second": {"reasoning": alone}, "winner_turned": 0.0}
    text = quality_text({**found, "position": bias, "spent_usd": {"judge": 0.00042}})
    assert "| reasoning | 0.500 (too few for an interval) |" in text
    assert "nan" not in text
    assert "Spent $0.000420." in text
