"""Publishing without a browser: the same checks, roles and audit lines as the page Releases."""

import json
import shutil
import sqlite3
import zipfile
from contextlib import closing

import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog import load_catalog
from hydra_core.cli.main import main
from hydra_core.server.live import StoreSource
from hydra_core.store import Action, Actor, Role, open_store

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
    with closing(open_store(tmp_path / "fresh")) as store:
        assert store.changed_revisions() == []
    _, said = run(capsys, "history", "pool", "--json")
    assert [one["note"] for one in json.loads(said.out)["revisions"]] == ["the second", "the first"]


def test_a_folder_without_a_store_is_neither_saved_nor_brought_back(
    workspace, tmp_path, capsys, monkeypatch
):
    for verb in (("backup", tmp_path / "saved"), ("audit", "verify")):
        code, said = run(capsys, *verb)
        assert code == 1
        assert "has no store" in said.err
    (tmp_path / "empty").mkdir()
    code, said = run(capsys, "restore", tmp_path / "empty")
    assert code == 1
    assert "no backup" in said.err
    assert list((tmp_path / "empty").iterdir()) == []
    assert not workspace.exists()


def test_restore_keeps_a_draft_that_nothing_was_published_of(
    workspace, tmp_path, capsys, monkeypatch
):
    run(capsys, "publish", FILE, "--as", "pool")
    run(capsys, "backup", tmp_path / "saved")
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path / "drafted"))
    ana = Actor("ana", Role.EDITOR)
    with closing(open_store(tmp_path / "drafted")) as store:
        store.drafts.start("new", FILE.read_text("utf-8"), actor=ana, base_revision=0)
    code, said = run(capsys, "restore", tmp_path / "saved")
    assert code == 1
    assert "has a store already" in said.err
    with closing(open_store(tmp_path / "drafted")) as store:
        assert [one.catalog for one in store.drafts.all()] == ["new"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE revisions SET yaml = yaml || '#' WHERE number = 1", "outside HyDRA: pool 1"),
        ("DELETE FROM audit WHERE id = 1", "trail is not whole"),
    ],
)
def test_a_damaged_backup_is_refused_and_leaves_the_workspace_free(
    workspace, edited, tmp_path, capsys, monkeypatch, change, fault
):
    run(capsys, "publish", FILE, "--as", "pool")
    run(capsys, "publish", edited, "--as", "pool")
    run(capsys, "backup", tmp_path / "saved")
    run(capsys, "backup", tmp_path / "damaged")
    with closing(sqlite3.connect(tmp_path / "damaged" / "hydra.sqlite3")) as database:
        database.execute(change)
        database.commit()
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path / "fresh"))
    code, said = run(capsys, "restore", tmp_path / "damaged")
    assert code == 1
    assert fault in said.err
    assert run(capsys, "restore", tmp_path / "saved")[0] == 0


def test_an_empty_trail_has_no_digest_to_keep(workspace, capsys):
    open_store().close()
    assert run(capsys, "audit", "verify")[1].out.endswith("hydra.sqlite3: no records yet\n")


def test_a_kept_digest_must_be_whole(workspace, capsys):
    run(capsys, "publish", FILE, "--as", "pool")
    head = run(capsys, "audit", "verify")[1].out.split()[-1]
    assert run(capsys, "audit", "verify", "--kept", f" {head.upper()} ")[0] == 0
    for kept in (head[:12], ""):
        code, said = run(capsys, "audit", "verify", "--kept", kept)
        assert code == 2
        assert "64 hexadecimal digits" in said.err
    code, said = run(capsys, "audit", "verify", "--kept", "0" * 64)
    assert code == 2
    assert "rewritten; 1 record before that fit together" in said.err


def test_a_name_means_what_serve_follows_under_it(workspace, edited, tmp_path, capsys):
    (workspace / "catalogs").mkdir(parents=True)
    run(capsys, "publish", edited, "--as", "pool")
    shutil.copy(FILE, workspace / "catalogs" / "pool.yaml")
    assert "this is my/pool; store:pool names pool" in run(capsys, "publish", "pool")[1].err
    assert StoreSource(open_store(), "pool").load().catalog.policy.tau == 0.123
    code, said = run(capsys, "export", "pool", "--out", tmp_path / "new" / "out.yaml")
    assert code == 0
    assert "my/pool is another catalog" in said.err
    assert load_catalog(tmp_path / "new" / "out.yaml").policy.tau == 0.123
    assert "tau" in run(capsys, "diff", "my/pool", 1, edited)[1].out
    assert run(capsys, "diff", "my/pool", 1, "pool")[1].out == "my/pool: 1 and pool do the same\n"
    code, said = run(capsys, "diff", "store:pool")
    assert code == 1
    assert "pool has one revision" in said.err


def test_another_file_becomes_the_next_revision_of_what_serve_follows(workspace, edited, capsys):
    (workspace / "catalogs").mkdir(parents=True)
    shutil.copy(FILE, workspace / "catalogs" / "pool.yaml")
    run(capsys, "publish", "pool")
    for number, name in ((2, "pool"), (3, "store:pool")):
        edited.write_text(f"{edited.read_text()}# {number}\n")
        code, said = run(capsys, "publish", edited, "--as", name)
        assert (code, said.out) == (0, f"my/pool: revision {number} is published\n")


def test_history_lists_every_revision_on_a_line_of_its_own(workspace, capsys):
    text, ana = FILE.read_text("utf-8"), Actor("ana", Role.PUBLISHER)
    with closing(open_store()) as store:
        for number in range(102):
            words = f"{text}# {number}\n"
            store.publish("pool", words, actor=ana, base_revision=number, note="first\nsecond")
    lines = run(capsys, "history", "pool")[1].out.splitlines()
    assert len(lines) == 102
    assert lines[-1].startswith("   1  ")
    assert lines[-1].endswith(" UTC  ana  first second")


def test_history_marks_a_revision_that_was_changed_outside(workspace, edited, capsys):
    for file in (FILE, edited):
        assert run(capsys, "publish", file, "--as", "pool", "--note", "n")[0] == 0
    with closing(sqlite3.connect(workspace / "hydra.sqlite3")) as database:
        database.execute("UPDATE revisions SET yaml = yaml || '#' WHERE number = 1")
        database.commit()
    newest, first = run(capsys, "history", "pool")[1].out.splitlines()
    assert "outside" not in newest
    assert first.endswith("(its text was changed outside HyDRA)")
    kept = json.loads(run(capsys, "history", "pool", "--json")[1].out)["revisions"]
    assert [one["changed_outside"] for one in kept] == [False, True]


def test_traffic_to_models_without_outcomes_is_said_and_kept(
    workspace, tmp_path, capsys, monkeypatch
):
    file, release = tmp_path / "new.yaml", tmp_path / "release.yaml"
    text = FILE.read_text("utf-8").replace("gpt-5.4-mini", "gpt-new")
    file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(SAMPLE_DATA / "console_demo")
    code, said = run(capsys, "publish", file, "--as", "new", "--evalset", ".", "--json")
    assert code == 0
    kept = json.loads(said.out)["metrics"]
    share = kept["unknown"]
    assert 0 < share < 1
    assert (
        f"warning: {100 * share:.1f} % of the traffic goes to models without outcomes" in said.err
    )
    run(capsys, "export", "new", "--out", release)
    written = release.read_text("utf-8")
    assert "revision 1 of new" in written
    assert f"# no outcomes: of {100 * share:.1f} % of the traffic" in written
    assert f"# savings: against {kept['baseline']}\n" in written


def test_a_release_is_published_without_its_first_lines(workspace, edited, tmp_path, capsys):
    release = tmp_path / "release.yaml"
    run(capsys, "publish", edited, "--as", "pool")
    run(capsys, "export", "pool", "--out", release)
    code, said = run(capsys, "validate", release)
    assert "a release, unchanged since it was written" in said.out
    assert run(capsys, "publish", release, "--as", "other")[0] == 0
    with closing(open_store()) as store:
        assert store.newest("other").yaml == edited.read_text("utf-8")
    release.write_text(release.read_text("utf-8").replace("tau: 0.123", "tau: 0.2"))
    code, said = run(capsys, "validate", release)
    assert code == 0
    assert "was edited since its release" in said.err


def test_publishing_warns_of_an_outcome_model_that_is_not_there(workspace, tmp_path, capsys):
    text = (CATALOGS / "mixed_2024.yaml").read_text("utf-8")
    (tmp_path / "away.yaml").write_text(text.replace("path: mixed_2024", "path: away"))
    code, said = run(capsys, "publish", tmp_path / "away.yaml", "--as", "away")
    assert code == 0
    assert "warning: serve cannot take revision 1 yet" in said.err


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
