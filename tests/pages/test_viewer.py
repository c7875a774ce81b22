"""A viewer tries every write there is: at the page, by a deep link, below it and on the command
line. Nothing changes."""

import argparse
import dataclasses

import pytest

from hydra_core.base.errors import AccessError
from hydra_core.choosing.write import audit_recorder
from hydra_core.cli.main import build_parser, main
from hydra_core.console.eval_sets.scoring import start
from hydra_core.console.tasks import Tasks
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.store import Action, Actor, Role
from tests.evalsets.sets import saved
from tests.pages.store_steps import ANA, FILE, NAME, draft, opened, priced

VIEWER = Actor("vic", Role.VIEWER)
PAGES = {
    "pages/operate/home.py": {},
    "pages/operate/inspect.py?part=message": {},
    "pages/operate/inspect.py?part=conversation": {},
    "pages/configure/catalog.py?part=models": {"catalog": NAME},
    "pages/configure/catalog.py?part=profiles": {"catalog": NAME},
    "pages/decide/tune.py?part=by-hand": {"catalog": NAME},
    "pages/configure/eval_sets.py?part=sets": {"set": "my/mine"},
    "pages/decide/compare.py": {"catalog": NAME},
    "pages/decide/releases.py?part=publish": {"catalog": NAME},
}
#: Kept by the browser session alone.
OF_THE_SESSION = {"tune.pin"}
WRITES = ("publish", "rollback", "adopt", "score", "remove", "bring_back", "pin", "note", "import")


@pytest.fixture
def filled(workspace):
    """A workspace with something of everything in it, and who may do what."""
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="one")
    store.publish(NAME, priced(FILE, 0.9), actor=ANA, base_revision=1, note="two")
    draft(store, priced(FILE, 0.8))
    saved(workspace / "evalsets" / "mine", name="mine")
    EvalSetChanges(ANA, store).write(
        workspace / "evalsets" / "mine",
        lambda: saved(workspace / "evalsets" / "mine", name="mine", force=True),
    )
    (workspace / "roles.yaml").write_text("users: {ana@example.org: publisher}\n")
    yield workspace
    store.close()


def state(workspace):
    """Everything a write could change."""
    store = opened(workspace)
    rows = [store.catalogs(), store.history(NAME), store.drafts.all(), store.audit()]
    rows += [store.points.all(NAME), store.notes.all("d" * 64)]
    store.close()
    files = sorted(str(p) for p in (workspace / "evalsets").rglob("*"))
    return rows, files


@pytest.mark.parametrize("page", PAGES)
def test_no_page_writes_for_a_viewer_whatever_is_pressed(filled, open_page, page):
    before = state(filled)
    app = open_page(page, **PAGES[page])
    assert not app.exception
    for button in app.button:
        if button.key in OF_THE_SESSION:
            continue
        if any(word in (button.key or "") for word in WRITES):
            assert button.disabled, button.key
            button.proto.disabled = False  # a browser would not send this; a forged message can
            button.click()
    app.run()
    assert not app.exception
    assert state(filled) == before


@pytest.mark.parametrize(
    ("page", "at"),
    [
        ("pages/configure/catalog.py?part=models", {"catalog": NAME}),
        ("pages/configure/catalog.py?part=profiles", {"catalog": NAME}),
        ("pages/configure/catalog.py?part=policy", {"catalog": NAME}),
        ("pages/decide/releases.py?part=publish", {"catalog": NAME}),
    ],
)
def test_every_part_on_a_draft_says_why_its_fields_are_disabled(filled, open_page, page, at):
    app = open_page(page, **at)
    assert any("your role is viewer" in caption.value for caption in app.caption)


def test_a_disabled_button_names_the_role_that_it_needs(filled, open_page):
    app = open_page("pages/configure/eval_sets.py?part=sets", set="my/mine")
    assert app.button("eval_sets.look").disabled
    assert app.button("eval_sets.look").help == "This needs the role publisher."


def test_a_viewer_writes_no_note_that_could_not_be_published(filled, open_page):
    app = open_page("pages/decide/releases.py?part=publish", catalog="paper_five")
    assert app.text_area("ship.note").disabled


def test_nothing_below_the_pages_writes_for_a_viewer(filled):
    store, before = opened(filled), state(filled)
    points, notes, drafts = store.points, store.notes, store.drafts
    note = store.notes.add("d" * 64, "q", "Ana's", actor=ANA)
    point = points.pin(
        NAME, "p", actor=ANA, revision=1, evalset_digest="d", tau=0.1, weights=(1.0,)
    )
    forged = dataclasses.replace(note, author="vic"), dataclasses.replace(point, author="vic")
    evalset = load_evalset(filled / "evalsets" / "mine")
    doing = EvalSetChanges(VIEWER, store)
    tasks = Tasks()
    task = tasks.start("key", lambda task: task.cancel.wait(20), owner="ana")
    attempts = [
        lambda: store.publish(NAME, priced(FILE, 0.7), actor=VIEWER, base_revision=2, note=""),
        lambda: store.roll_back(NAME, 1, actor=VIEWER, base_revision=2, note=""),
        lambda: drafts.start("other", FILE, actor=VIEWER, base_revision=0),
        lambda: drafts.discard(drafts.all()[0], actor=VIEWER),
        lambda: points.remove(forged[1], actor=VIEWER),
        lambda: notes.remove(forged[0], actor=VIEWER),
        lambda: notes.add("d" * 64, "q", "mine", actor=VIEWER),
        lambda: doing.write(filled / "evalsets" / "new", lambda: None),
        lambda: doing.write(filled / "evalsets" / "mine", lambda: None),
        lambda: doing.remove(filled / "evalsets" / "mine"),
        lambda: start(tasks, evalset, default_predictor(), actor=VIEWER, store=store),
        lambda: doing.score(evalset, default_predictor()),
        lambda: audit_recorder(VIEWER, store, filled / "outcome_models" / "mine"),
        lambda: task.stop(VIEWER),
        *(
            lambda action=action: store.record_event(VIEWER, action, "anything")
            for action in Action
            if action is not Action.READ
        ),
    ]
    for attempt in attempts:
        with pytest.raises(AccessError):
            attempt()
    assert not task.cancel.is_set()
    task.cancel.set()
    notes.remove(note, actor=ANA)
    points.remove(point, actor=ANA)
    after = state(filled)
    assert (after[0][:3], after[1]) == (before[0][:3], before[1])
    assert len(after[0][3]) == len(before[0][3]) + 4  # Ana's note and point, made and removed
    store.close()


VERBS = [
    ["import", "table", "rows.csv", "--out", "{workspace}/evalsets/new"],
    ["import", "table", "rows.csv", "--out", "{workspace}/evalsets/mine", "--force"],
    ["import", "table", "rows.csv", "--out", "./elsewhere"],
    ["score", "{workspace}/evalsets/mine"],
    ["score-parts", "parts", "--out", "./elsewhere"],
    ["sweep", "parts", "--catalog", "pool.yaml", "--out", "./elsewhere"],
    ["dependence", "{workspace}/evalsets/mine", "--accept"],
    ["learn", "{workspace}/evalsets/mine", "--models", "a,b", "--out", "./elsewhere"],
    ["init", "{workspace}/evalsets/mine", "--price", "a=1,2", "--out", "./elsewhere"],
    ["init", "{workspace}/evalsets/mine", "--out", "pool.yaml", "--force"],
    ["collect", "rows.jsonl", "--grade", "grade.yaml", "--out", "./elsewhere"],
    ["fit", "{workspace}/evalsets/mine", "--catalog", "pool.yaml", "--as", "profiles"]
    + ["--out", "./elsewhere"],
    ["promise", "{workspace}/evalsets/mine", "--catalog", "pool.yaml", "--out", "./elsewhere"],
    ["canary", "begin", "log", "--catalog", "pool.yaml"],
    ["publish", "pool.yaml"],
    ["rollback", "pool", "1"],
    ["export", "pool", "--out", "./elsewhere"],
    ["restore", "./elsewhere"],
    ["lab", "label", "rows.jsonl", "--config", "label.yaml", "--out", "./elsewhere"],
    ["lab", "recalibrate", "rows.csv", "--evalset", "{workspace}/evalsets/mine"]
    + ["--out", "./elsewhere"],
    ["report", "evaluation", "set", "--catalog", "pool.yaml", "--out", "./elsewhere"],
    ["rebind", "pool.yaml"],
]


@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(words[:2]))
def test_no_verb_writes_for_a_viewer(filled, tmp_path, monkeypatch, capsys, words):
    (tmp_path / "rows.csv").write_text("query_id,text,model,quality,cost_usd\na,hello,m,1,0.1\n")
    (tmp_path / "pool.yaml").write_text(FILE)
    (tmp_path / "who.yaml").write_text("default: viewer\nusers: {ana@example.org: publisher}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_ROLES", str(tmp_path / "who.yaml"))
    before = state(filled)
    code = main([word.format(workspace=filled) for word in words])
    told = capsys.readouterr().err
    assert code == 1, told
    assert "has the role viewer and may not" in told
    assert state(filled) == before
    assert (tmp_path / "pool.yaml").read_text() == FILE
    assert not (tmp_path / "elsewhere").exists()


def test_every_verb_that_takes_a_place_to_write_is_tried():
    tried = {" ".join(words[: 1 + (words[0] in ("report", "lab"))]) for words in VERBS}
    importers = kinds_of(kinds_of(build_parser())["import"])
    assert all(parser.get_default("asks") == "IMPORT" for parser in importers.values())
    assert set(writing(build_parser())) - {f"import {name}" for name in importers} <= tried


def kinds_of(parser):
    """Name -> parser of what comes after it."""
    found = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def writing(parser, before=""):
    """Verbs with --out."""
    if any("--out" in action.option_strings for action in parser._actions):
        yield before
    for name, kind in kinds_of(parser).items():
        yield from writing(kind, f"{before} {name}".strip())
