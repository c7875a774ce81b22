"""Publishing without a browser: the same checks, roles and audit lines as the page Releases."""

import json
import zipfile

import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.store import Action, open_store

FILE = CATALOGS / "paper_five.yaml"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path / "workspace"))
    return tmp_path / "workspace"


@pytest.fixture
def edited(tmp_path):
    """The shipped catalog with another tau."""
    text = FILE.read_text(encoding="utf-8")
    tau = load_catalog(FILE).policy.tau
    assert f"tau: {tau:g}" in text
    path = tmp_path / "edited.yaml"
    path.write_text(text.replace(f"tau: {tau:g}", "tau: 0.123", 1), encoding="utf-8")
    return path


def run(capsys, *words):
    code = main([str(word) for word in words])
    return code, capsys.readouterr()


def test_publish_history_diff_rollback(workspace, edited, capsys):
    assert run(capsys, "publish", FILE, "--as", "pool", "--note", "the first")[0] == 0
    code, said = run(capsys, "publish", edited, "--as", "pool", "--note", "cheaper", "--json")
    assert (code, json.loads(said.out)["revision"]) == (0, 2)
    code, said = run(capsys, "diff", "pool", "--json")
    (change,) = json.loads(said.out)["changes"]
    assert change["after"] == "0.123"
    assert run(capsys, "rollback", "pool", 1, "--note", "a typo")[0] == 0
    _, said = run(capsys, "history", "pool", "--json")
    found = json.loads(said.out)["revisions"]
    assert [(one["revision"], one["restores"]) for one in found] == [(3, 1), (2, None), (1, None)]
    assert run(capsys, "diff", "pool", 3, FILE)[1].out.strip().endswith("do the same")
    store = open_store(workspace)
    actions = [line.action for line in store.audit("pool")]
    assert actions == [Action.ROLL_BACK.value, Action.PUBLISH.value, Action.PUBLISH.value]
    store.close()


def test_what_was_measured_is_kept_with_the_revision(workspace, capsys):
    folder = SAMPLE_DATA / "console_demo"
    code, said = run(capsys, "publish", FILE, "--evalset", folder, "--json")
    assert code == 0
    kept = json.loads(said.out)["metrics"]["values"]
    _, said = run(capsys, "evaluate", folder, "--catalog", FILE, "--json")
    evaluated = json.loads(said.out)["router"]
    for name in ("qr", "quality", "cs", "misroute", "mean_cost_usd"):
        assert kept[name] == pytest.approx([evaluated[name], *evaluated["ci"][name]])


def test_a_viewer_may_not_publish(workspace, capsys, monkeypatch):
    workspace.mkdir()
    roles = workspace / "roles.yaml"
    roles.write_text("default: viewer\n")
    monkeypatch.setenv("HYDRA_ROLES", str(roles))
    code, said = run(capsys, "publish", FILE)
    assert code != 0
    assert "viewer" in said.err


def test_a_name_that_is_not_published_says_what_is(workspace, capsys):
    run(capsys, "publish", FILE, "--as", "pool")
    code, said = run(capsys, "history", "pol")
    assert code == 1
    assert "pool" in said.err


@pytest.mark.parametrize("form", ["hydra", "litellm", "vllm"])
def test_exports_are_written(workspace, tmp_path, capsys, form):
    run(capsys, "publish", FILE, "--as", "pool")
    out = tmp_path / f"{form}.yaml"
    assert run(capsys, "export", "pool", "--as", form, "--out", out)[0] == 0
    assert out.read_text(encoding="utf-8").strip()
    if form == "hydra":
        assert load_catalog(out).models == load_catalog(FILE).models


def test_a_backup_comes_back_whole_and_overwrites_nothing(
    workspace, edited, tmp_path, capsys, monkeypatch
):
    run(capsys, "publish", FILE, "--as", "pool", "--note", "the first")
    run(capsys, "publish", edited, "--as", "pool", "--note", "the second")
    code, said = run(capsys, "backup", tmp_path / "saved", "--json")
    head = json.loads(said.out)["head"]
    assert code == 0
    assert run(capsys, "restore", tmp_path / "saved")[0] == 1
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path / "fresh"))
    code, said = run(capsys, "restore", tmp_path / "saved", "--json")
    assert (code, json.loads(said.out)["published"]) == (0, {"pool": 2})
    assert json.loads(said.out)["head"] == head
    _, said = run(capsys, "history", "pool", "--json")
    assert [one["note"] for one in json.loads(said.out)["revisions"]] == ["the second", "the first"]


def test_a_release_with_an_outcome_model_is_a_zip_of_both(workspace, tmp_path, capsys):
    run(capsys, "publish", "catalog/mixed_2024.yaml", "--as", "mixed")
    run(capsys, "publish", FILE, "--as", "pool")
    code, said = run(capsys, "export", "mixed", "--out", tmp_path / "mixed.yaml")
    assert code == 0
    assert "not in it: the outcome model mixed_2024; for both, --out FILE.zip" in said.err
    assert run(capsys, "export", "mixed", "--out", tmp_path / "mixed.zip")[0] == 0
    zipfile.ZipFile(tmp_path / "mixed.zip").extractall(tmp_path / "whole")
    assert run(capsys, "validate", tmp_path / "whole" / "mixed.yaml")[0] == 0
    code, said = run(capsys, "export", "pool", "--out", tmp_path / "pool.zip")
    assert (code, (tmp_path / "pool.zip").exists()) == (1, False)
    assert "give --out FILE.yaml" in said.err
