"""The commands of docs/guide/first_hour.md, and what the page says they print."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.console.consoles import free_port, wait_for

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "guide" / "first_hour.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
PROGRAM = f"{sys.executable} -m hydra_core"


def run(block, folder):
    """What the commands of a block print."""
    shell = block.replace("hydra-router", PROGRAM)
    environ = {"HYDRA_WORKSPACE": str(folder / "workspace"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-ec", shell], cwd=folder, env=environ, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def left_over(shown, printed):
    """Lines of the page that the output does not have, in order; '...' skips some."""
    at, free, lost = 0, False, []
    lines = printed.splitlines()
    for line in shown.splitlines():
        if line == "...":
            free = True
            continue
        places = [i for i in range(at, len(lines)) if lines[i] == line]
        if not places or (places[0] != at and not free):
            lost.append(line)
        else:
            at, free = places[0] + 1, False
    return lost


@pytest.mark.slow
def test_each_step_prints_what_the_page_says(tmp_path):
    said, steps = "", 0
    for language, block in STEPS:
        if language == "sh" and "hydra-router" in block:
            said, steps = run(block, tmp_path), steps + 1
        elif language == "text":
            assert left_over(block, said) == []
    assert steps == 4


@pytest.mark.slow
def test_the_router_answers_as_the_page_says(tmp_path):
    (call,) = [block for language, block in STEPS if language == "bash"]
    port = free_port()
    command = [*PROGRAM.split(), "serve", "--catalog", "paper_five", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(f"http://127.0.0.1:{port}/health", server)
            body = re.search(r"-d '(.*)'", call)[1].encode()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/decision", body) as answer:
                text = answer.read().decode()
        finally:
            server.terminate()
    (beginning,) = re.findall(r"begins with `(.*?)`", PAGE)
    assert text.startswith(beginning)
    assert json.loads(text)["knob"] == pytest.approx(0.24)


def test_a_line_that_the_output_lacks_is_noticed():
    assert left_over("a\n...\nd\n", "a\nb\nc\nd\n") == []
    assert left_over("a\nc\n", "a\nb\nc\n") == ["c"]
    assert left_over("x\n", "a\n") == ["x"]
