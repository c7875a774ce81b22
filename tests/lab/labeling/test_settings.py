"""label.yaml, message files and the ledger: what is refused, and how it is said."""

import pytest

from hydra_core.base.errors import LabelError
from hydra_core.lab.labeling.config import EXAMPLE, load_config
from hydra_core.lab.labeling.ledger import Call, Ledger
from hydra_core.lab.labeling.messages import read_messages, tier_of
from tests.lab.labeling.fake_server import settings


def test_the_example_is_valid():
    assert load_config(EXAMPLE).dimensions[-1] == "tool_use"


def test_a_judge_that_is_an_arm_is_refused_unless_told(tmp_path):
    text = settings("http://x/v1").replace("judge-model", "strong-model")
    path = tmp_path / "label.yaml"
    path.write_text(text)
    with pytest.raises(LabelError, match="'strong-model' is one of the answering models"):
        load_config(path)
    path.write_text("allow_judge_as_arm: true\n" + text)
    assert load_config(path).servers["judge"].model == "strong-model"


def test_every_fault_of_a_file_is_named_at_once(tmp_path):
    text = settings("ftp://x", budget=-1).replace("input_usd_per_mtok: 1", "input_usd: 1", 1)
    text = text.replace("output_usd_per_mtok: 2", "output_usd_per_mtok: 2.0e-6", 1)
    (tmp_path / "label.yaml").write_text(text)
    with pytest.raises(LabelError) as caught:
        load_config(tmp_path / "label.yaml")
    said = str(caught.value)
    for part in ("budget_usd", "must be > 0, got -1", "http:// or https://", "is missing",
                 "did you mean 'input_usd_per_mtok'?", "looks like a price per token"):  # fmt: skip
        assert part in said


def test_bad_messages_are_named_by_line(tmp_path):
    path = tmp_path / "m.jsonl"
    good, bad = (
        '{"id": "a", "text": "x", "lang": "en"}',
        '{"id": "b", "text": 3, "lang": "en", "tier": 4}',
    )
    path.write_text("\n".join((good, good, bad)))
    with pytest.raises(LabelError) as caught:
        read_messages(path)
    assert "line 2: id 'a' occurs twice" in str(caught.value)
    assert "line 3: text must be text" in str(caught.value)
    assert "line 3: tier must be 1, 2 or 3" in str(caught.value)


def test_a_message_without_a_language_gets_the_detected_one(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text(
        '{"id": "a", "text": "Bitte sortiere diese Liste."}\n'
        '{"id": "b", "text": "Bitte sortiere diese Liste.", "lang": "en"}\n',
    )
    assert [one.lang for one in read_messages(path)] == ["de", "en"]


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("What is a monad?", 3),
        ("Explain TCP/IP and 24/7 support", 3),
        ("Look at https://example.com/a/b and sum up", 3),
        ("@src/app.ts why does it fail", 1),
        ("refactor utils.py", 1),
        ("continue", 2),
        ("why does this function return None?", 2),
        ("继续", 2),
        ("修复这个函数", 2),
        ("corrige cette fonction", 2),
    ],
)
def test_the_tier_is_read_off_the_text(text, tier):
    assert tier_of(text) == tier


def test_a_torn_last_line_is_cut_off_and_a_damaged_one_is_an_error(tmp_path):
    path = tmp_path / "ledger.jsonl"
    call = Call("m", "cheap")
    with Ledger(path, "r") as ledger:
        ledger.add("asked", call, most_usd=0.5, digest="d")
        ledger.add("answered", call, cost_usd=0.25, tokens=[], content="hi")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event": "asw')
    with Ledger(path, "r") as ledger:
        assert ledger.record.answered == {call: "hi"}
        assert ledger.record.committed_usd == 0.25
    assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b'"answered"', b'"answered'))
    with pytest.raises(LabelError, match="line 3: (is damaged|was changed)"):
        Ledger(path, "r")


def test_one_run_at_a_time(tmp_path):
    with (
        Ledger(tmp_path / "ledger.jsonl", "r"),
        pytest.raises(LabelError, match="another run is writing"),
    ):
        Ledger(tmp_path / "ledger.jsonl", "r")
