"""What lies in deploy/ and .github/ fits the program: commands parse, files and paths exist."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from docs.write_stable import paths
from hydra_core.cli.main import build_parser

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNIT = (DEPLOY / "hydra-router.service").read_text()
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()


def parsed(arguments):
    options, unknown = build_parser().parse_known_args(arguments)
    assert not unknown or hasattr(options, "passed_on")
    return options


def test_the_commands_of_compose_and_unit_are_ours():
    serve = parsed(COMPOSE["services"]["serve"]["command"])
    assert (serve.workers, serve.host) == (2, "0.0.0.0")
    start = re.search(r"^ExecStart=(.*?[^\\])$", UNIT, re.M | re.S).group(1).replace("\\\n", " ")
    program, *arguments = shlex.split(start)
    assert program == "/opt/hydra/bin/hydra-router"
    assert parsed(arguments).workers == 2
    assert re.search(r'^CMD \["console"', CONTAINERFILE, re.M)


def test_the_guide_shows_lines_of_the_unit_in_order():
    guide = (ROOT / "docs" / "deploy.md").read_text()
    shown = re.search(r"^# deploy/hydra-router.service, shortened\n(.*?)^```", guide, re.M | re.S)
    lines = iter(UNIT.splitlines())
    assert [line for line in shown.group(1).splitlines() if line not in lines] == []


def test_files_that_compose_mounts_are_there_or_said_to_be_the_operators():
    head = (DEPLOY / "compose.yaml").read_text().split("name: hydra")[0]
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./") and source[2:] not in head:
                assert (DEPLOY / source).exists(), source


def test_the_health_check_asks_a_path_of_the_router():
    (asked,) = re.findall(r"8600(/[\w/]+)", CONTAINERFILE)
    assert asked in paths()


def test_the_image_is_built_from_what_it_needs():
    taken = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    for line in taken:
        if line.startswith("!"):
            assert list(ROOT.glob(line[1:])), line
    needed = {"app.py", "pages", "catalog", "sample_data", "hydra_core", "pyproject.toml"}
    assert needed <= {line[1:] for line in taken}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / "hydra-router.service"
    unit.write_text(UNIT.replace("/opt/hydra/bin/hydra-router", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_workflow_runs_what_the_project_runs():
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    (job,) = flow["jobs"].values()
    assert any(".ci/run" in step.get("run", "") for step in job["steps"])
