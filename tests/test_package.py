"""HyDRA as `pip install` gives it to somebody: what the wheel holds, and that it runs alone."""

import contextlib
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from hydra_core.base.shipped import VERSION
from tests.console.consoles import free_port, wait_for

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def listed(name):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_requirements_txt_is_the_list_of_pyproject():
    assert listed("requirements.txt") == PROJECT["dependencies"]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_dependency_is_locked(lock):
    """A new dependency needs `make lock`."""
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / lock).read_text(encoding="utf-8"), re.M))
    asked = {re.split(r"[\[<>=]", line)[0].lower() for line in PROJECT["dependencies"]}
    assert {name.replace(".", "-") for name in asked} <= {n.replace(".", "-") for n in locked}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "pip", "wheel", ".", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "-w", folder], cwd=ROOT, check=True, timeout=300)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def scripts(wheel, tmp_path_factory):
    """Folder of the programs of an environment with the wheel and what it depends on.

    The dependencies are those of the running environment; its copy of HyDRA is the wheel's.
    """
    folder = tmp_path_factory.mktemp("installed") / "v"
    venv.create(folder, with_pip=False, symlinks=True)
    places = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", places))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    python = Path(sysconfig.get_path("scripts", "venv", places)) / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps"]
    subprocess.run([*install, "--no-index", wheel], check=True, timeout=300)
    return python.parent


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A current folder that is not the repository; no network, nothing that points back to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "guard"))
    monkeypatch.delenv("HYDRA_WORKSPACE", raising=False)
    return tmp_path


def output(*command, stdin=""):
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.package
def test_the_wheel_holds_the_console_and_no_texts_to_train_on(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    beside = [*ROOT.glob("pages/*/*.py"), *ROOT.glob("catalog/**/*.*"), ROOT / "app.py"]
    beside += [ROOT / ".streamlit" / "config.toml", *ROOT.glob("sample_data/*.yaml")]
    beside += [*ROOT.glob("sample_data/*/**/*.parquet"), *ROOT.glob("sample_data/*/*.yaml")]
    assert {f"hydra_core/files/{path.relative_to(ROOT).as_posix()}" for path in beside} <= names
    bundle = ROOT / "hydra_core" / "predictor" / "default"
    assert {f"hydra_core/predictor/default/{path.name}" for path in bundle.iterdir()} <= names
    assert "hydra_core/py.typed" in names
    assert not [name for name in names if name.startswith("hydra_core/lab/training/data/")]
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.package
def test_an_installed_wheel_routes_and_validates(scripts, elsewhere):
    say = "from hydra_core.base.shipped import CATALOGS; print(CATALOGS)"
    catalogs = Path(output(scripts / "python", "-c", say).strip())
    assert catalogs.is_relative_to(scripts.parent)
    for name, said in (("paper_five", "valid catalog"), ("mixed_2024", "outcome model")):
        catalog = catalogs / f"{name}.yaml"
        assert said in output(scripts / "hydra-router", "validate", catalog)
    command = [scripts / "hydra-router", "route", "--catalog", catalog]
    model = output(*command, stdin="Rename the variable tmp to total.").strip()
    assert f"id: {model}\n" in catalog.read_text(encoding="utf-8")


@pytest.mark.package
def test_an_installed_wheel_says_its_version_and_commit(scripts, elsewhere):
    told = output(scripts / "hydra-router", "version").split()
    head = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    asked = subprocess.run(head, capture_output=True, text=True)
    assert told[1] == VERSION
    assert told[3] == (asked.stdout.strip() or "unknown") + ","


@contextlib.contextmanager
def running(*command, port, path):
    """A server of the wheel that answers there."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*map(str, command)], **quiet)
    try:
        wait_for(f"http://127.0.0.1:{port}{path}", server)
        yield
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.package
def test_an_installed_console_answers(scripts, elsewhere):
    port = free_port()
    options = ["--server.port", port, "--server.headless", "true"]
    with running(scripts / "hydra-router", "console", *options, port=port, path="/_stcore/health"):
        pass


@pytest.mark.package
def test_an_installed_wheel_leads_from_outcomes_to_a_router(scripts, elsewhere):
    rows = ["id,text,model,quality,cost_usd"]
    for i in range(60):
        text, small = (f"Prove {i}.", 0) if i % 2 else (f"Greet guest {i}.", 1)
        rows += [f"{i},{text},small,{small},0.001", f"{i},{text},large,{int(i % 6 > 0)},0.01"]
    (elsewhere / "results.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    hydra = scripts / "hydra-router"
    for verb in (
        "import table results.csv --map query_id=id --out mine",
        "init mine --price small=0.1,0.4 --price large=1,4 --out mine",
        "learn mine --catalog mine --out mine --folds 2",
        "publish mine --evalset mine --note first",
    ):
        output(hydra, *verb.split())
    port = free_port()
    command = [hydra, "serve", "--catalog", "store:mine", "--port", port]
    with running(*command, port=port, path="/health"):
        body = json.dumps({"messages": [{"role": "user", "content": "Greet guest 3."}]}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/decision", body) as answer:
            assert json.load(answer)["model"] in ("small", "large")
