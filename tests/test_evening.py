"""The commands of docs/guide/evening.md, run as they stand there against a local server."""

import json
import re
import shlex
from pathlib import Path

import pytest

from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.store import open_store
from tests.lab.labeling import fake_server
from tests.lab.labeling.fake_server import FakeServer

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "evening.md"


def answer(body, rubbish=False):
    """`large` is right but on every tenth number, `small` on short questions."""
    asked = body["messages"][-1]["content"]
    number = int(re.search(r"Double (\d+)", asked)[1])
    good = number % 10 > 0 if body["model"] == "large-1" else len(asked) < 60
    return str(2 * number) if good else "I do not know"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(fake_server, "content", answer)
    found = FakeServer()
    yield found
    found.shutdown()
    found.server_close()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.slow
def test_the_evening_ends_with_a_published_router(server, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_WORKSPACE", "workspace")
    prices, upstreams, _ = blocks("yaml")  # the third is an example of another grader
    Path("prices.yaml").write_text(prices)
    Path("upstreams.yaml").write_text(re.sub(r"http://127\.0\.0\.1:\d+/v1", server.url, upstreams))
    long = " and explain every step of the calculation in the greatest detail"
    rows = [
        {"id": f"q{i}", "text": f"Double {i}{long * (i % 2)}", "reference": str(2 * i)}
        for i in range(120)
    ]
    Path("messages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for line in "".join(blocks("sh")).splitlines():
        command, _, target = line.partition(" > ")
        words = shlex.split(command)
        assert words[0] == "hydra-router"
        capsys.readouterr()
        assert main(words[1:]) == 0, line
        if target:
            Path(target).write_text(capsys.readouterr().out)
    made = load_evalset(Path("workspace/evalsets/mine"))
    assert made.quality.mean(axis=0) == pytest.approx([0.5, 0.9])
    assert server.paid_twice == 0
    store = open_store(Path("workspace"))
    assert store.catalogs() == {"my/mine": 1}
    store.close()
