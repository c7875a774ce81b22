"""How the command line ends when what it reads from or writes to is not there."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hydra_core.cli.main import main
from hydra_core.evalsets.folders import replace_folder, sweep
from tests.evalsets.sets import saved

ROOT = Path(__file__).resolve().parents[1]
CATALOG = "catalog/paper_five.yaml"
ROUTE = f"{sys.executable} -m hydra_core route --catalog {CATALOG}"


def shell(command, **options):
    return subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, **options
    )


@pytest.mark.parametrize(
    "command",
    [
        f"{ROUTE} <&-",
        f"{ROUTE} --stream <&-",
        f"{sys.executable} -m hydra_core score-texts <&-",
        f"{sys.executable} -m hydra_core validate {CATALOG} >&-",
        f"echo hello | {ROUTE} >&-",
        f"{sys.executable} -m hydra_core validate {CATALOG} >/dev/full",
        f"{sys.executable} -m hydra_core validate {CATALOG} --json >/dev/full",
    ],
)
def test_a_closed_or_full_end_is_one_line_and_exit_1(command):
    done = shell(command)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_an_import_onto_a_full_disk_is_exit_1(tmp_path):
    (tmp_path / "rows.csv").write_text(
        "query_id,text,model,quality,cost_usd\n"
        + "".join(f"q{n},{'word ' * 50}{n},m,1,0.1\n" for n in range(200))
    )
    command = f"{sys.executable} -m hydra_core import table {tmp_path}/rows.csv"
    done = shell(f"ulimit -f 4; trap '' XFSZ; {command} --out {tmp_path}/set")
    assert done.returncode == 1, done.stderr
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    "level", ["NaN", "Infinity", "-Infinity", "1e999", "-0.1", "1.1", "9" * 400]
)
def test_a_health_that_is_no_share_is_an_error_line(level, monkeypatch, capsys):
    lines = f'{{"text": "hi", "health": {{"claude-haiku-4.5": {level}}}}}\n{{"text": "hi"}}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    ended = main(["route", "--catalog", str(ROOT / CATALOG), "--stream"])
    bad, good = map(json.loads, capsys.readouterr().out.splitlines())
    assert "numbers in [0, 1]" in bad["error"]
    assert good["model"]
    assert ended == 2


def test_what_a_killed_import_left_is_swept_and_a_running_one_is_not(tmp_path):
    root = tmp_path / "evalsets"
    saved(root / "mine")
    for name in (".mine.abcd1234", ".other.x_y_z_12", ".mine.abcd1234.old"):
        (root / name).mkdir()
    (root / ".earlier").mkdir()
    seen = []

    def fill(folder):
        sweep(root)
        seen.append(folder.exists())
        (folder / "x").write_text("x")

    replace_folder(root / "more", fill)
    assert seen == [True]
    assert sorted(p.name for p in root.iterdir()) == [".earlier", "mine", "more"]
    assert os.listdir(root / "more") == ["x"]
