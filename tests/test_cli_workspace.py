"""A bare name means what the workspace holds, for every verb, as the console shows it."""

import io
import json
import shutil
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.workspace import workspace_folder
from hydra_core.catalog import load_catalog
from hydra_core.cli import workspace
from hydra_core.cli.main import main
from hydra_core.console import cache
from hydra_core.store import Action, Actor, Role, open_store
from tests.evalsets.sets import saved
from tests.predictor.tiny_bundle import make_bundle

ROOT = Path(__file__).parents[1]
MODELS = ("gpt-5", "gpt-5-mini", "gpt-5.2")
ANA = Actor("ana", Role.PUBLISHER)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "tiny"
    make_bundle(folder)
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch, bundle):
    """A workspace with a set and a catalog, both called mine."""
    folder = tmp_path / "here"
    monkeypatch.setenv("HYDRA_WORKSPACE", str(folder))
    monkeypatch.chdir(tmp_path)
    quality = np.array([[1, 1, 1], [0, 0, 1], [1, 0, 1.0]])
    cost = np.array([[0.2, 0.02, 0.5], [0.2, 0.03, 0.6], [0.3, 0.04, 0.7]])
    saved(folder / "evalsets" / "mine", models=MODELS, quality=quality, cost_usd=cost)
    (folder / "catalogs").mkdir()
    shutil.copy(ROOT / "catalog" / "matched_three.yaml", folder / "catalogs" / "mine.yaml")
    assert main(["rebind", "mine", "--bundle", str(bundle)]) == 0
    assert main(["score", "mine", "--bundle", str(bundle)]) == 0
    return folder


@pytest.fixture
def run(capsys, monkeypatch):
    """Run one command line: (exit code, stdout, stderr)."""

    def call(*arguments, stdin=""):
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def publish(folder, name, text, base=0):
    with closing(open_store(folder)) as store:
        store.publish(name, text, actor=ANA, base_revision=base, note="test")


def test_what_comes_next_can_be_typed_where_names_have_spaces(home, run):
    Path("my results.csv").write_text("query_id,text,model,quality,cost_usd\nq,hi,a,1,0.1\n")
    code, _, err = run("import", "table", "my results.csv", "--out", "my set")
    assert code == 0
    assert "next: hydra-router score 'my set'" in err
    assert (home / "evalsets" / "my set" / "evalset.yaml").is_file()


def test_readmes_way_from_a_table_to_a_result_needs_names_only(home, run, bundle):
    Path("results.csv").write_text(
        "id,text,model,quality,cost_usd\n"
        + "".join(
            f"q{i},fix bug {i},{model},{(i + k) % 2},{0.1 * (k + 1)}\n"
            for i in range(60)
            for k, model in enumerate(("a", "b"))
        )
    )
    code, _, err = run("import", "table", "results.csv", "--map", "query_id=id", "--out", "new")
    assert code == 0
    assert "next: hydra-router score new" in err
    prices = ("--price", "a=1,2", "--price", "b=2,4", "--bundle", bundle)
    code, _, err = run("init", "new", *prices, "--out", "new")
    assert code == 0
    assert "next: hydra-router evaluate new --catalog new" in err
    assert (home / "evalsets" / "new" / "evalset.yaml").is_file()
    assert (home / "catalogs" / "new.yaml").is_file()
    code, out, _ = run("evaluate", "new", "--catalog", "new", "--json")
    assert (code, json.loads(out)["n"]) == (0, 60)
    shown = {entry.key for entry in cache.catalogs()}, {entry.key for entry in cache.evalsets()}
    assert "my/new" in shown[0]
    assert "my/new" in shown[1]


def test_every_reading_verb_takes_names(home, run, bundle):
    for arguments in (
        ("evaluate", "mine", "--catalog", "mine"),
        ("report", "ablation", "mine", "--catalog", "mine"),
        ("validate", "paper_swebench"),
        ("dependence", "mine"),
        ("score", "mine", "--bundle", bundle),
        ("serve", "--catalog", "mine", "--bundle", bundle, "--check"),
    ):
        code, _, err = run(*arguments)
        assert code == 0, err
    code, out, _ = run("route", "--catalog", "mine", "--bundle", bundle, stdin="fix the bug")
    assert (code, out.strip() in MODELS) == (0, True)


def test_a_catalog_gets_no_name_that_could_not_be_published(home, run):
    options = ("--catalog", "mine", "--as", "success", "--out", "my pool")
    code, _, err = run("fit", "mine", *options)
    assert code == 2
    assert "my pool.yaml: --out: 'my pool' contains space (U+0020) (use letters" in err


def test_a_catalog_file_of_the_workspace_is_written_with_a_line_of_the_trail(home, run, bundle):
    assert run("rebind", "mine", "--bundle", bundle, "--from-evalset", "mine")[0] == 0
    shutil.copy(home / "catalogs" / "mine.yaml", home.parent / "outside.yaml")
    assert run("rebind", home.parent / "outside.yaml", "--bundle", bundle)[0] == 0
    for file in ("matched_three.yaml", "paper_five.yaml"):  # as init, fit and promise do
        text = (ROOT / "catalog" / file).read_text("utf-8")
        workspace.write_catalog(workspace.CATALOG.place("new"), text)
    with closing(open_store(home)) as store:
        kept = [(one.action, one.subject, sorted(one.metrics)) for one in store.audit()]
        first, second = store.audit()[1].metrics, store.audit()[0].metrics
    states = ["after", "before"]
    assert kept[:3] == [
        (Action.REPLACE_CATALOG.value, "catalog file new.yaml", states),
        (Action.MAKE_CATALOG.value, "catalog file new.yaml", states),
        (Action.REBIND.value, "catalog file mine.yaml", states),
    ]
    assert (first["before"], second["before"]) == ("", first["after"])
    assert run("publish", "new")[0] == 0
    code, _, err = run("export", "new", "--out", home / "catalogs" / "mine.yaml")
    assert code == 1
    assert "is a catalog of the workspace" in err


def test_what_is_shipped_is_read_by_name_and_never_written(home, run):
    code, out, _ = run("evaluate", "paper_swebench", "--catalog", "paper_five_published", "--json")
    assert (code, json.loads(out)["n"]) == (0, 500)
    assert workspace.EVALSET.place("paper_swebench") == home / "evalsets" / "paper_swebench"
    before = (ROOT / "catalog" / "paper_five.yaml").read_text()
    code, _, err = run("rebind", "paper_five")
    assert code == 1
    assert "has no catalog 'paper_five'; the one that comes with HyDRA is not changed" in err
    assert (ROOT / "catalog" / "paper_five.yaml").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "mnie", "--catalog", "mine"), "no eval set 'mnie'; did you mean mine?"),
        (("evaluate", "mine", "--catalog", "mien"), "no catalog 'mien'; did you mean mine?"),
        (("score", "zzz"), "no eval set 'zzz'; there are: mine, console_demo, "),
        (("evaluate", "mine", "--catalog", "mine", "--outcome-model", "om"),
         "no outcome model 'om'; there are: none"),
        (("validate", "mine"), "'mine' names 2 things; write "),
        (("validate", "nothing"), "no catalog, eval set or outcome model 'nothing'"),
    ],
)  # fmt: skip
def test_an_unknown_name_says_what_is_there(home, run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert message in err


def test_a_folder_here_of_an_unknown_name_is_pointed_out(home, run):
    saved(Path("beside"))
    code, _, err = run("validate", "beside")
    assert code == 1
    assert "write ./beside" in err
    assert run("validate", "./beside")[0] == 0


def test_a_name_is_the_published_revision_a_path_the_file(home, run):
    file = home / "catalogs" / "mine.yaml"
    text = file.read_text()
    tau = load_catalog(file).policy.tau
    publish(home, "my/mine", text.replace(f"tau: {tau:g}", "tau: 0.777"))
    _, out, err = run("evaluate", "mine", "--catalog", "mine", "--json")
    assert json.loads(out)["router"]["tau"] == 0.777
    assert "mine is revision 1, the published one" in err
    _, out, _ = run("evaluate", "mine", "--catalog", file, "--json")
    assert json.loads(out)["router"]["tau"] == tau
    assert workspace.catalog_source("mine") == "store:my/mine"
    (entry,) = [one for one in cache.catalogs() if one.key == "my/mine"]
    assert entry.catalog.policy.tau == 0.777


def test_a_catalog_that_was_only_ever_published_has_its_name(home, run):
    text = (home / "catalogs" / "mine.yaml").read_text()
    publish(home, "production", text)
    assert run("evaluate", "mine", "--catalog", "production")[0] == 0
    assert workspace.catalog_source("production") == "store:production"
    code, _, err = run("evaluate", "mine", "--catalog", "prodction")
    assert (code, "did you mean production?" in err) == (1, True)


def test_a_path_into_the_workspace_is_published_under_its_name(home, run, monkeypatch):
    monkeypatch.chdir(home.parent)
    code, out, _ = run("publish", f"{home.name}/catalogs/mine.yaml")
    assert (code, out) == (0, "my/mine: revision 1 is published\n")


def test_what_serve_follows_is_a_name_for_every_verb(home, run):
    _, _, err = run("evaluate", "mine", "--catalog", "store:mine")
    assert "store:mine was never published; published are: none" in err
    file = home / "catalogs" / "mine.yaml"
    text, tau = file.read_text(), load_catalog(file).policy.tau
    for name, other in (("my/mine", 0.777), ("production", 0.333)):
        publish(home, name, text.replace(f"tau: {tau:g}", f"tau: {other}"))
    for name, expected in (("mine", 0.777), ("my/mine", 0.777), ("production", 0.333)):
        _, out, _ = run("evaluate", "mine", "--catalog", f"store:{name}", "--json")
        assert json.loads(out)["router"]["tau"] == expected
    code, _, err = run("evaluate", "mine", "--catalog", "store:prodction")
    assert (code, "published are: my/mine, production" in err) == (1, True)


def test_logs_and_labelling_runs_lie_where_the_console_reads_them(home):
    assert workspace.log_folder("log") == home / "log"
    assert workspace.log_folder("canary") == home / "logs" / "canary"
    assert workspace.log_folder("./log") == Path("log")
    assert workspace.LABELING_RUN.place("first") == home / "labels" / "first"


def test_the_workspace_is_here_where_nothing_names_another(monkeypatch, tmp_path):
    monkeypatch.delenv("HYDRA_WORKSPACE", raising=False)
    monkeypatch.chdir(tmp_path)
    assert workspace_folder() == tmp_path / "workspace"
    assert workspace.CATALOG.place("mine") == tmp_path / "workspace" / "catalogs" / "mine.yaml"
    for path in ("mine.yaml", "a/mine", "./mine", "..", "/tmp/mine"):
        assert workspace.CATALOG.place(path) == Path(path)


def test_what_is_published_by_name_is_the_same_catalog_in_the_console(home, run):
    assert run("publish", "mine", "--note", "the first")[0] == 0
    (entry,) = [one for one in cache.catalogs() if one.key == "my/mine"]
    assert entry.revision == 1
    assert len([one for one in cache.catalogs() if one.key.endswith("mine")]) == 1
    code, out, _ = run("history", "mine", "--json")
    assert (code, [one["revision"] for one in json.loads(out)["revisions"]]) == (0, [1])
    assert run("export", "mine", "--out", "release.yaml")[0] == 0
    assert Path("release.yaml").is_file()
