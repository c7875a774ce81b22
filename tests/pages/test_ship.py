"""The Ship page: publish, look back, take back, merge, export."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from hydra_core.base.types import Rule
from hydra_core.catalog import parse_catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.console import cache, replays
from hydra_core.console.tune.view_learned import headline
from hydra_core.outcome_model.format import load_outcome_model
from tests.console.valued import valued
from tests.made_once import made_once
from tests.pages.moving import to
from tests.pages.store_steps import ANA, BEN, FILE, NAME, draft, opened, priced, shown

PAGE = "pages/decide/releases.py?part=publish"
HERE = {"set": "paper_swebench", "catalog": NAME}


@pytest.fixture(autouse=True)
def _ana(monkeypatch):
    monkeypatch.setenv("HYDRA_OPERATOR", "Ana")


def part(app, name):
    return to(app, f"pages/decide/releases.py?part={name}").run()


def test_a_draft_is_published_with_its_note_and_figures(open_page, workspace):
    store = opened(workspace)
    draft(store, priced(FILE, 0.8))
    app = open_page(PAGE, **HERE)
    assert "1 change to the file" in shown(app)
    app.text_area(key="ship.note").set_value("price rose").run()
    app.button(key="ship.publish").click().run()
    assert not app.exception
    assert "Revision 1 is published" in shown(app)
    revision = store.newest(NAME)
    assert revision.note == "price rose"
    assert revision.author == "Ana"
    assert set(revision.metrics["values"]) >= {"qr", "mean_cost_usd"}
    assert parse_catalog(revision.yaml).model("claude-haiku-4.5").input_usd_per_mtok == 0.8
    part(app, "history")
    assert "price rose" in str(app.dataframe[0].value["note"].tolist())


def test_history_names_a_revision_that_was_changed_outside_of_hydra(open_page, workspace):
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="first")
    store.publish(NAME, priced(FILE, 0.8), actor=ANA, base_revision=1, note="second")
    with closing(sqlite3.connect(workspace / "hydra.sqlite3")) as database:
        database.execute("UPDATE revisions SET yaml = yaml || '#' WHERE number = 1")
        database.commit()
    app = open_page("pages/decide/releases.py?part=history", **HERE)
    assert not app.exception
    assert "revision 1 was changed outside HyDRA" in app.error[0].value
    assert app.dataframe[0].value["note"].tolist() == ["second", "first"]


def test_other_pages_route_with_what_was_published(open_page, workspace):
    document = priced(FILE, 99.0).replace("tau: 0.24", "tau: 0.5")
    opened(workspace).publish(NAME, document, actor=ANA, base_revision=0, note="")
    app = open_page("pages/decide/tune.py?part=by-hand", **HERE)
    assert app.number_input(key="tune.tau").value == 0.5


def test_an_earlier_revision_is_brought_back_as_a_new_one(open_page, workspace):
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="first")
    store.publish(NAME, priced(FILE, 9.0), actor=ANA, base_revision=1, note="typo")
    app = part(open_page(PAGE, **HERE), "history")
    assert "This is what is published" in shown(app)
    assert app.dataframe[0].value["revision"].tolist() == [2, 1]


def test_two_who_changed_the_same_value_have_to_choose(open_page, workspace):
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="first")
    draft(store, priced(FILE, 0.8))
    store.publish(NAME, priced(FILE, 0.7), actor=BEN, base_revision=1, note="from the invoice")
    app = open_page(PAGE, **HERE)
    assert not app.exception
    assert "Ben published revision 2" in shown(app)
    assert "from the invoice" in shown(app)
    assert app.data_editor[0].value["theirs"].tolist() == ["0.7"]
    merge = app.button(key="ship.merge")
    assert merge.disabled
    assert "fill the column Take" in merge.help


def test_a_roll_back_says_so_and_leaves_nothing_picked(open_page, workspace):
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="first")
    store.publish(NAME, priced(FILE, 0.7), actor=ANA, base_revision=1, note="second")
    app = part(open_page(PAGE, **HERE), "history")
    app.session_state["ship.history.2"] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    app.run()
    app.button(key="ship.rollback").click().run()
    assert "Revision 3 is published: it says what revision 1 said" in shown(app)
    assert "This is what is published" in shown(app)
    assert not [button for button in app.button if button.key == "ship.rollback"]


def test_edits_of_different_values_merge_by_themselves(open_page, workspace):
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="first")
    draft(store, priced(FILE, 0.8))
    theirs = priced(FILE, 2.0, "gpt-5.4")
    store.publish(NAME, theirs, actor=BEN, base_revision=1, note="")
    app = open_page(PAGE, **HERE)
    app.button(key="ship.merge").click().run()
    app.button(key="ship.publish").click().run()
    merged = parse_catalog(store.newest(NAME).yaml)
    assert store.newest(NAME).number == 3
    assert merged.model("claude-haiku-4.5").input_usd_per_mtok == 0.8
    assert merged.model("gpt-5.4").input_usd_per_mtok == 2.0


@pytest.mark.parametrize("form", ["HyDRA release", "LiteLLM proxy", "vLLM Semantic Router"])
def test_every_export_is_shown(open_page, form):
    app = part(open_page(PAGE, **HERE), "exports")
    app.session_state["ship.format"] = form
    app.run()
    assert not app.exception
    assert "gpt-5.4" in app.code[0].value


def test_a_viewer_cannot_publish(open_page, workspace):
    (workspace / "roles.yaml").write_text("default: viewer\n", encoding="utf-8")
    app = open_page(PAGE, **HERE)
    assert app.button(key="ship.publish").disabled
    assert "may not publish" in shown(app)


def test_a_draft_that_is_not_valid_cannot_be_published(open_page, workspace):
    draft(opened(workspace), priced(FILE, -1.0))
    app = open_page(PAGE, **HERE)
    assert "claude-haiku-4.5 · Input price" in shown(app)
    assert not [button for button in app.button if button.key == "ship.publish"]


def test_the_policy_found_on_tune_is_taken_into_the_draft(open_page, workspace):
    app = open_page(PAGE, **HERE, tau="0.31")
    assert "On the Tune page you have τ 0.31" in shown(app)
    app.button(key="ship.take_tuned").click().run()
    assert not app.exception
    assert parse_catalog(opened(workspace).drafts.find(NAME, ANA).text).policy.tau == 0.31


def uploaded(app, text, name="theirs.yaml"):
    app = part(app, "exports")
    app.segmented_control(key="exports.view").set_value("Import").run()
    app.file_uploader[0].set_value((name, text.encode(), "application/yaml")).run()
    return app


def test_a_catalog_from_elsewhere_is_compared_and_adopted(open_page, workspace):
    app = uploaded(open_page(PAGE, **HERE), priced(FILE, 0.9))
    assert not app.exception
    assert app.dataframe[0].value["change"].tolist() == ["claude-haiku-4.5 input price"]
    app.button(key="ship.adopt").click().run()
    assert "Draft: 1 change" in shown(app)


def test_a_broken_catalog_changes_nothing(open_page, workspace):
    app = uploaded(open_page(PAGE, **HERE), FILE.replace("tau: 0.24", "tua: 0.24"))
    assert not app.exception
    assert "did you mean" in shown(app)
    assert opened(workspace).drafts.find(NAME, ANA) is None


def test_a_tau_found_by_dragging_is_not_fixed_on_that_set_once_published(open_page):
    tune = "pages/decide/tune.py?part=by-hand"
    app = open_page(tune, **HERE)
    app.number_input(key="tune.tau").set_value(0.31).run()
    to(app, PAGE).run()
    app.button(key="ship.take_tuned").click().run()
    app.button(key="ship.publish").click().run()
    assert "Revision 1 is published" in shown(app)
    to(app, tune).run()
    assert app.number_input(key="tune.tau").value == 0.31
    told = shown(app)  # the details of the result are among it
    assert "was picked on these queries" in told
    assert "The catalog's policy was chosen on these queries." in told
    assert "fixed beforehand" not in told


@pytest.fixture
def own(workspace):
    """A catalog of five models on a set that has outcomes of three of them."""
    learned = made_once("valued", lambda folder: valued(folder, 200))
    shutil.copytree(learned, workspace, dirs_exist_ok=True)
    return workspace


def table(app):
    """Label -> cells of the table before and after."""
    (found,) = [one.value for one in app.markdown if one.value.startswith("| Figure |")]
    lines = [line.replace("\\", "").strip("| ").split(" | ") for line in found.split("\n")[2:]]
    return {cells[0].strip(): [one.strip() for one in cells[1:]] for cells in lines}


def test_a_release_shows_both_sides_and_what_changes(open_page, workspace):
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="first")
    draft(store, priced(FILE, 0.8).replace("tau: 0.24", "tau: 0.5"))
    rows = table(open_page(PAGE, **HERE))
    assert {"Resolved", "Quality retention", "Cost per query", "Result"} <= rows.keys()
    assert "points (" in rows["Against the best fixed mix"][0]
    shares = {label: cells for label, cells in rows.items() if label.startswith("Traffic to")}
    for side in (0, 1):
        total = sum(float(cells[side].rstrip(" %")) for cells in shares.values())
        assert total == pytest.approx(100.0, abs=0.3)
    entry = next(one for one in cache.evalsets() if one.key == HERE["set"])
    drafted = cache.parsed(store.drafts.find(NAME, ANA).text, NAME)[0]
    metrics = replays.replayed(entry, drafted).metrics
    assert rows["Resolved"][1].startswith(f"{100 * metrics.quality.value:.1f} %")
    for model, share in metrics.shares.items():
        if share:
            assert shares[f"Traffic to {model}"][1] == f"{100 * share:.1f} %"


def test_a_share_of_traffic_that_stays_has_no_sign(open_page, workspace):
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="first")
    draft(store, priced(FILE, 0.8))
    rows = table(open_page(PAGE, **HERE))
    changes = {cells[2] for label, cells in rows.items() if label.startswith("Traffic to")}
    assert changes == {"0.0 points"}


def test_publishing_asks_where_traffic_goes_to_models_nobody_measured(open_page, own):
    """Three of five models have outcomes: what the other two get is named, and asked for."""
    path = own / "catalogs" / "valued.yaml"
    text = path.read_text(encoding="utf-8").replace("rule: value", "rule: shortfall")
    path.write_text(text, encoding="utf-8")
    app = open_page(PAGE)
    assert not app.exception
    unknown = [label for label in table(app) if label.endswith("(no outcomes)")]
    assert unknown
    assert table(app)["Resolved"][0].startswith("≥ ")
    assert "go to models without outcomes" in shown(app) or "goes to models" in shown(app)
    assert app.button(key="ship.publish").disabled
    app.checkbox(key="ship.unknown").check().run()
    app.button(key="ship.publish").click().run()
    assert "Revision 1 is published" in shown(app)


def test_a_set_with_outcomes_of_one_model_is_no_evidence(open_page, own):
    """It would find every policy right: quality retention 100 %."""
    path = own / "catalogs" / "valued.yaml"
    document = CatalogDocument.parse(path.read_text(encoding="utf-8"))
    document.remove("outcome_model")
    text = document.text().replace("rule: value", "rule: shortfall")
    for model in cache.parsed(text, "valued")[0].models[1:]:
        text = text.replace(f"id: {model.id}\n", f"id: my-{model.id}\n")
    path.write_text(text, encoding="utf-8")
    app = open_page(PAGE, catalog="my/valued")
    assert not app.exception
    assert "100.0 %" not in shown(app)
    assert "No eval set fits this catalog" in shown(app)
    assert app.button(key="ship.publish").disabled


def test_learneds_advice_is_repeated_where_the_draft_goes_against_it(open_page, own):
    folder = own / "outcome_models" / "traffic"
    catalog = cache.parsed((own / "catalogs" / "valued.yaml").read_text(), "valued")[0]
    advised, _, _ = headline(load_outcome_model(folder))
    assert catalog.policy.rule is Rule.VALUE
    text = shown(open_page(PAGE))
    assert ("routes by it nevertheless" in text) is not advised


def test_litellms_export_asks_for_providers_before_it_is_offered(open_page, workspace):
    """Public data names no providers, and LiteLLM calls a model by provider/name."""
    app = part(open_page(PAGE, catalog="mixed_2024"), "exports")
    app.segmented_control(key="ship.format").set_value("LiteLLM proxy").run()
    assert not app.exception
    assert "Who serves these models?" in shown(app)
    assert not app.get("download_button")
    for box in [one for one in app.text_input if str(one.key).startswith("ship.provider.")]:
        box.set_value("openai")
    app.run()
    assert "model: openai/llama-3-70b-instruct" in app.code[0].value
    assert "hydra_core.server.litellm_plugins.routing" in app.code[0].value
    assert "HYDRA_CATALOG=mixed_2024.yaml" in shown(app)
    assert app.get("download_button")
    app.button(key="ship.providers").click().run()
    draft_text = opened(workspace).drafts.find("mixed_2024", ANA).text
    assert {one.provider for one in parse_catalog(draft_text).models} == {"openai"}


def test_an_upload_that_is_not_utf8_is_refused_by_its_line(open_page):
    app = open_page("pages/decide/releases.py?part=exports", **HERE)
    app.segmented_control(key="exports.view").set_value("Import").run()
    written = "name: a\nnote: ä\n".encode("latin-1")
    app.file_uploader(key="ship.upload").set_value(("mine.yaml", written, "text/yaml")).run()
    assert "Line 2 of mine.yaml is not UTF-8" in app.error[0].value.replace("\\", "")
