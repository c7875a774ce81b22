"""The Catalog page: drafts, their problems, and what they would change."""

import re
from datetime import date

import pytest

from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.catalog import parse_catalog, pool
from hydra_core.console.catalog.add_model import missing_fields
from hydra_core.console.catalog.policy import with_field
from hydra_core.evalsets.evalset import load_evalset
from tests.pages import live
from tests.pages.store_steps import ANA, BEN, FILE, NAME, ROOT, draft, opened, priced, shown

PAGE = "pages/configure/catalog.py?part=models"
POLICY = "pages/configure/catalog.py?part=policy"
WHAT_IF = "pages/configure/catalog.py?part=what-if"
HERE = {"set": "paper_swebench", "catalog": NAME}
FILE_FIVE = (ROOT / "catalog" / "paper_five.yaml").read_text(encoding="utf-8")
AGENTS = (ROOT / "catalog" / "agents_2026.yaml").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _ana(monkeypatch):
    monkeypatch.setenv("HYDRA_OPERATOR", "Ana")


def tile(app, label):
    return next(metric for metric in app.metric if metric.label == label)


def test_without_a_draft_nothing_would_change(open_page):
    app = open_page(PAGE, **HERE)
    assert not app.exception
    assert "No unpublished edits" in shown(app)
    assert tile(app, "Resolved").delta == "unchanged"


def test_a_draft_is_there_again_after_a_reload(open_page, workspace):
    draft(opened(workspace), priced(FILE, 30.0))
    for _ in range(2):
        app = open_page(PAGE, **HERE)
        assert "Draft: 1 change" in shown(app)
        row = next(r for _, r in app.data_editor[0].value.iterrows() if "haiku" in r["id"])
        assert row["input_usd_per_mtok"].strip() == "30"


def test_undo_and_redo_walk_through_the_draft(open_page, workspace):
    draft(opened(workspace), priced(FILE, 30.0))
    app = open_page(PAGE, **HERE)
    app.button(key="catalog.undo").click().run()
    assert "No unpublished edits" in shown(app)
    app.button(key="catalog.redo").click().run()
    assert "Draft: 1 change" in shown(app)


def test_a_discarded_draft_comes_back_with_undo(open_page, workspace):
    draft(opened(workspace), priced(FILE, 30.0))
    app = open_page(PAGE, **HERE)
    assert "Ana's, saved" in shown(app)
    app.button(key="catalog.discard").click().run()
    assert "No unpublished edits" in shown(app)
    app.button(key="catalog.undo").click().run()
    assert "Draft: 1 change" in shown(app)


@pytest.mark.parametrize("number", [0, 1])
def test_a_discarded_draft_stays_away_when_somebody_publishes(open_page, workspace, number):
    """It would undo what they published."""
    store = opened(workspace)
    if number:
        store.publish(NAME, FILE, actor=BEN, base_revision=0, note="first")
    draft(store, priced(FILE, 30.0))
    app = open_page(PAGE, **HERE)
    app.button(key="catalog.discard").click().run()
    store.publish(NAME, priced(FILE, 25.0), actor=BEN, base_revision=number, note="dearer")
    app = open_page(PAGE, **HERE)
    assert "No unpublished edits" in shown(app)
    row = next(r for _, r in app.data_editor[0].value.iterrows() if "haiku" in r["id"])
    assert row["input_usd_per_mtok"].strip() == "25"
    assert opened(workspace).drafts.find(NAME, ANA) is None


def test_another_persons_draft_is_named(open_page, workspace):
    draft(opened(workspace), priced(FILE, 30.0), BEN)
    assert "Ben has a draft too" in shown(open_page(PAGE, **HERE))


def test_the_form_of_a_new_model_names_the_fields_that_are_empty():
    given = {"id": "", "provider": "x", "input_usd_per_mtok": None, "output_usd_per_mtok": 1}
    assert missing_fields(given)[:2] == ["Model id", "Input price, USD / Mtok"]


def form(app, place):
    """Open the form; AppTest runs the whole page, which would close it, so it is opened again."""
    app.button(key="catalog.Add model").click().run()
    app.segmented_control(key="catalog.new_place").set_value(place)
    app.button(key="catalog.Add model").click().run()


def add_model(app, place, **fields):
    """Fill in the form of a new model, and press the button."""
    form(app, place)
    typed = {
        "Model id": "newcomer", "Provider": "acme", "Input price, USD / Mtok": 0.3,
        "Output price, USD / Mtok": 0.6, "Context window, tokens": 128000, **fields,
    }  # fmt: skip
    for one in (*app.text_input, *app.number_input):
        value = next((v for label, v in typed.items() if one.label.startswith(label)), None)
        if value is not None:
            one.set_value(value)
    app.button(key="catalog.Add model").click()
    next(one for one in app.button if one.label == "Add to the draft").click().run()
    assert not app.exception
    return app


MIXED = {"set": "mixed_2024", "catalog": "mixed_2024"}  # its cost basis is realised


def added(workspace, name="mixed_2024"):
    saved = opened(workspace).drafts.find(name, ANA)
    return None if saved is None else parse_catalog(saved.text)


def test_a_new_model_needs_a_success_rate_and_its_prices_alone(open_page, workspace):
    app = add_model(open_page(PAGE, **MIXED), "Success rate", **{"How often": 70.0})
    assert "Draft: 1 change" in shown(app)
    catalog = added(workspace)
    assert catalog.policy.cost_basis == "realised"
    assert "newcomer" not in catalog.realised_costs.usd_per_query
    pool_ = pool(catalog, today=date(2026, 11, 1))
    place = pool_.capabilities[pool_.ids.index("newcomer")]
    assert (place >= pool_.capabilities.min(axis=0)).all()
    assert (place <= pool_.capabilities.max(axis=0)).all()


def test_a_new_model_takes_traffic_in_the_preview_and_its_quality_is_unknown(open_page):
    app = add_model(open_page(PAGE, **MIXED), "Success rate", **{"How often": 70.0})
    said = shown(app)
    assert "No query" not in said
    assert "of the queries go to newcomer, without outcomes in this set" in said
    assert "Quality lies between" in said
    assert any(one.label == "Resolved ≥" for one in app.metric)
    change = tile(app, "Resolved ≥").delta.replace("\\", "")
    assert change.startswith("−")
    assert " to +" in change


def test_fields_of_the_catalog_show_as_many_digits_as_are_typed(open_page, workspace):
    app = open_page(PAGE, **MIXED)
    form(app, "By hand")
    priced_ = [one for one in app.number_input if "price" in one.label or one.label == "Debugging"]
    assert {one.proto.format for one in priced_} == {"%.10g"}
    draft(opened(workspace), with_field(FILE, "teams.search", {"budget": {"usd": 1_234_567.5}}))
    app = open_page(POLICY, **HERE)
    assert field(app, "Budget, USD").proto.format == field(app, "Threshold τ").proto.format
    assert field(app, "Threshold τ").proto.format == "%.10g"  # %.6g showed 1.23457e+6


def test_capabilities_by_hand_start_empty_and_have_to_be_typed(open_page, workspace):
    app = add_model(open_page(PAGE, **MIXED), "By hand", Reasoning=0.4)
    assert [one.value for one in app.number_input if one.label in ("Debugging", "Tool use")] == [
        None, None,
    ]  # fmt: skip
    assert any("Missing: Code generation, Debugging, Tool use" in e.value for e in app.error)
    assert added(workspace) is None


def test_a_model_of_which_nothing_is_known_gets_no_traffic(open_page, workspace):
    app = add_model(open_page(PAGE, **MIXED), "Nothing yet")
    catalog = added(workspace)
    assert catalog.model("newcomer").status == "disabled"
    assert "newcomer" not in pool(catalog, today=date(2026, 11, 1)).ids
    assert "No query of" in shown(app)


def test_a_new_model_can_be_given_benchmark_rates(open_page):
    app = open_page(PAGE, set="console_demo", catalog="paper_five")
    form(app, "Benchmark rates")
    assert not app.exception
    rates = next(one.value for one in app.data_editor if "rate" in one.value)
    assert len(rates) == 9
    assert rates["rate"].isna().all()


def test_disabling_a_model_says_why_other_capabilities_move(open_page, workspace):
    five = (FILE_FIVE).replace("status: active", "status: disabled", 1)
    store = opened(workspace)
    started = store.drafts.start("paper_five", FILE_FIVE, actor=ANA, base_revision=0)
    store.drafts.save(started, five, actor=ANA)
    app = open_page(PAGE, set="console_demo", catalog="paper_five")
    assert "who is in the pool shifts everybody" in shown(app)


def test_a_wrong_value_is_told_with_its_row_and_column(open_page, workspace):
    wrong = priced(FILE, -5.0).replace("status: active", "status: actve", 1)
    draft(opened(workspace), wrong)
    app = open_page(PAGE, **HERE)
    assert not app.exception
    said = shown(app)
    assert "claude-haiku-4.5 · Input price" in said
    assert "did you mean 'active'?" in said
    assert "must be > 0, got -5" in str(app.data_editor[0].value["check"].tolist())


def test_removing_a_model_that_carries_traffic_changes_the_figures(open_page, workspace):
    text = FILE.replace(
        "- id: gpt-5.3-codex\n    provider: openai\n    status: active",
        "- id: gpt-5.3-codex\n    provider: openai\n    status: disabled",
    )
    assert text != FILE
    draft(opened(workspace), text)
    app = open_page(PAGE, **HERE)
    assert "change their model" in shown(app)
    assert tile(app, "Cost per query").delta != "unchanged"


@pytest.mark.parametrize("page", [POLICY, WHAT_IF])
def test_every_part_opens(open_page, page):
    assert not open_page(page, **HERE).exception


@pytest.mark.parametrize("view", ["Cards", "Capabilities"])
def test_every_view_opens(open_page, view):
    app = open_page(PAGE, **HERE)
    app.session_state["catalog.view"] = view
    app.run()
    assert not app.exception


@pytest.mark.parametrize("kind", ["remove", "add", "reprice"])
def test_any_model_can_be_removed_added_or_repriced_without_touching_the_draft(
    open_page, workspace, kind
):
    app = open_page(WHAT_IF, **HERE)
    app.selectbox(key="catalog.event.kind").set_value(kind).run()
    app.selectbox(key="catalog.event.model").set_value("gpt-5.3-codex").run()
    if kind == "reprice":
        field(app, "Input, USD per Mtok").set_value(90.0).run()
    assert not app.exception
    sent = live.knob(app)
    retention = next(one for one in sent["tiles"] if one["label"] == "Quality retention")
    assert "against one oracle" in retention["help"]
    assert [bar["label"] for bar in sent["bars"]] == ["before", "after"]
    assert "your draft is not touched" in shown(app)
    assert "change their model" in shown(app)
    assert opened(workspace).drafts.find(NAME, ANA) is None


def test_both_sides_of_a_what_if_are_compared_at_the_setting_given(open_page):
    app = open_page(WHAT_IF, **HERE)
    assert live.knob(app)["text"] == "τ 0.24"
    app.number_input(key="what_if.tau").set_value(0.1).run()
    assert not app.exception
    assert live.knob(app)["text"] == "τ 0.1"
    assert {one["interval"] for one in live.knob(app)["tiles"]} == {"unchanged"}


def test_the_address_of_a_part_on_a_draft_leads_others_to_the_same_figures(open_page):
    app = open_page(WHAT_IF, **HERE)
    app.number_input(key="what_if.tau").set_value(0.1).run()
    link = {name: value for name, value in app.query_params.items() if name != "part"}
    assert link["catalog"] == NAME
    assert "set" in link
    other = open_page(WHAT_IF, **link)
    assert not other.exception
    assert live.knob(other)["text"] == "τ 0.1"
    assert live.knob(other)["tiles"] == live.knob(app)["tiles"]


def test_the_address_of_a_what_if_holds_its_event(open_page):
    app = open_page(WHAT_IF, **HERE)
    app.selectbox(key="catalog.event.kind").set_value("reprice").run()
    app.selectbox(key="catalog.event.model").set_value("gpt-5.3-codex").run()
    field(app, "Input, USD per Mtok").set_value(90.0).run()
    link = {name: value for name, value in app.query_params.items() if name != "part"}
    other = open_page(WHAT_IF, **link)
    assert not other.exception
    assert field(other, "Input, USD per Mtok").value == 90.0
    assert live.knob(other)["tiles"] == live.knob(app)["tiles"]
    odd = open_page(WHAT_IF, **{**link, "event": "burn", "model": "nobody", "prices": "x/-1"})
    assert not odd.exception
    assert odd.selectbox(key="catalog.event.kind").value == ""


def test_a_viewer_can_look_and_not_edit(open_page, workspace):
    (workspace / "roles.yaml").write_text("default: viewer\n", encoding="utf-8")
    app = open_page(PAGE, **HERE)
    assert not app.exception
    assert app.button(key="catalog.Add model").disabled
    assert "your role is viewer" in shown(app)
    app = open_page(POLICY, **HERE)
    fields = [*app.text_input, *app.number_input, *app.multiselect]
    team = next(one for one in fields if one.label == "Team")
    assert team.disabled
    assert all(one.disabled for one in fields if one.form_id == team.form_id)


def test_a_roles_file_that_cannot_be_read_lets_nobody_in(open_page, workspace):
    (workspace / "roles.yaml").write_text("users: [", encoding="utf-8")
    app = open_page(PAGE, **HERE)
    assert "nobody is let in" in shown(app)
    assert not app.data_editor


def test_every_setting_of_the_policy_is_edited_with_what_it_alone_does(open_page):
    app = open_page(POLICY, set="console_demo", catalog="paper_five")
    tau = next(one for one in app.number_input if one.label == "Threshold τ")
    tau.set_value(0.0).run()
    assert not app.exception
    assert max(box.max for box in app.number_input) == 1e12
    assert "Draft: 1 change" in shown(app)
    assert "File: 0.24. By itself:" in shown(app)
    mode = next(one for one in app.selectbox if one.label == "Stickiness")
    mode.set_value("adaptive").run()
    assert not app.exception
    assert "Draft: 2 changes" in shown(app)
    assert any(one.label == "Margin beyond τ" for one in app.number_input)


def test_score_caps_are_set_and_taken_out_with_what_they_do(open_page):
    app = open_page(POLICY, set="console_demo", catalog="paper_five")
    assert "Switched on: none." in shown(app)
    dimensions = ("reasoning", "code generation", "debugging", "tool use")
    for name in dimensions:
        field(app, f"Cap on {name}").set_value(0.0).run()
    assert not app.exception
    assert "Switched on: scores count up to reasoning 0, code generation 0" in shown(app)
    assert "File: no cap. By itself" in shown(app)
    cost = next(one for one in app.metric if one.label == "Cost per query")
    assert "−" in cost.delta
    for name in dimensions:
        field(app, f"Cap on {name}").set_value(None).run()
    assert not app.exception
    assert "Switched on: none." in shown(app)


def test_a_repricing_begins_at_the_price_that_is_published(open_page, workspace):
    app = open_page(WHAT_IF, **HERE)
    app.selectbox(key="catalog.event.kind").set_value("reprice").run()
    app.selectbox(key="catalog.event.model").set_value("claude-haiku-4.5").run()
    now = parse_catalog(FILE).model("claude-haiku-4.5").input_usd_per_mtok
    assert field(app, "Input, USD per Mtok").value == now
    opened(workspace).publish(NAME, priced(FILE, 7.0), actor=ANA, base_revision=0, note="")
    assert field(app.run(), "Input, USD per Mtok").value == 7.0


def test_small_limits_have_no_exponent(open_page, workspace):
    budget = {"usd": 0.00001, "least": 0.000001}
    text = with_field(FILE, "defences.budget_usd", 0.00002)
    draft(opened(workspace), with_field(text, "teams.search", {"budget": budget}))
    said = shown(open_page(POLICY, **HERE))
    for told in ("$0.00002 a conversation", "$0.00001 a month", "least 0.000001"):
        assert told in said


def test_every_value_that_a_catalog_may_have_is_shown(open_page, workspace):
    text = FILE
    for name, value in {
        "defences.budget_usd": 0.005, "stall.after": 3, "stall.requirement_step": 0.005,
        "teams.search": {"tau": 0.3, "value_usd": 0.2, "budget": {"usd": 5.0, "least": 0.0005}},
    }.items():  # fmt: skip
        text = with_field(text, name, value)
    draft(opened(workspace), text)
    app = open_page(POLICY, **HERE)
    app.selectbox(key="catalog.teams.which").set_value("search").run()
    assert not app.exception
    assert field(app, "Budget of a conversation, USD").value == 0.005
    assert field(app, "Added to every requirement").value == 0.005
    field(app, "Budget, USD").set_value(6.0)
    next(one for one in app.button if one.label == "Save team").click().run()
    assert not app.exception
    team = parse_catalog(opened(workspace).drafts.find(NAME, ANA).text).policy.teams["search"]
    assert (team.tau, team.value_usd, team.budget.usd, team.budget.least) == (0.3, 0.2, 6.0, 0.0005)


def test_a_team_without_a_name_is_asked_for_one(open_page):
    app = open_page(POLICY, **HERE)
    next(one for one in app.button if one.label == "Save team").click().run()
    assert "Give the team its name" in shown(app)


def test_a_new_team_replaces_none_of_the_same_name(open_page, workspace):
    draft(opened(workspace), with_field(FILE, "teams.search", {"budget": {"usd": 5.0}}))
    app = open_page(POLICY, **HERE)
    next(one for one in app.text_input if one.label == "Team").set_value("search")
    next(one for one in app.button if one.label == "Save team").click().run()
    assert "There is a team search" in shown(app)
    team = parse_catalog(opened(workspace).drafts.find(NAME, ANA).text).policy.teams["search"]
    assert team.budget.usd == 5.0


def field(app, label):
    return next(one for one in app.number_input if one.label == label)


def test_an_edit_is_recorded_on_the_set_whose_figures_are_shown(open_page, workspace):
    app = open_page(POLICY, set="mixed_2024", catalog=NAME)  # the set in the link does not fit
    shown_set = app.selectbox(key="data.evalset").value
    next(one for one in app.number_input if one.label == "Threshold τ").set_value(0.3).run()
    saved = opened(workspace).drafts.find(NAME, ANA)
    names = [one.evalset for one in parse_catalog(saved.text).policy.chosen_on]
    assert names == [load_evalset(SAMPLE_DATA / shown_set).name]


def test_a_team_keeps_what_its_form_was_not_asked_to_change(open_page, workspace):
    budget = {"usd": 1_234_567.0, "falls_from": 0.07, "cheapest_from": 0.58}
    models = [FILE.split("- id: ")[-1].split("\n")[0], "one-that-left"]
    text = with_field(FILE, "teams.search", {"models": models, "budget": budget})
    draft(opened(workspace), text)
    app = open_page(POLICY, **HERE)
    assert "$1,234,567 a month" in shown(app)
    app.selectbox(key="catalog.teams.which").set_value("search").run()
    next(one for one in app.button if one.label == "Save team").click().run()
    assert not app.exception
    team = parse_catalog(opened(workspace).drafts.find(NAME, ANA).text).policy.teams["search"]
    assert team.models == frozenset(models)
    assert (team.budget.falls_from, team.budget.cheapest_from) == (0.07, 0.58)


def test_a_price_below_a_cent_is_no_zero_on_its_card(open_page, workspace):
    text = FILE
    for price in ("input", "output"):
        text = re.sub(
            rf"{price}_usd_per_mtok: [\d.]+", f"{price}_usd_per_mtok: 0.003", text, count=1
        )
    draft(opened(workspace), text)
    app = open_page(PAGE, **HERE)
    app.session_state["catalog.view"] = "Cards"
    app.run()
    assert not app.exception
    assert "$0.00300 blended" in shown(app)


def test_imported_prices_show_that_a_price_goes(open_page):
    model = parse_catalog(AGENTS).models[0]
    assert model.cached_input_usd_per_mtok
    app = open_page(PAGE, catalog="agents_2026")
    app.button(key="catalog.Import prices").click().run()
    listed = f"model,input,output\n{model.id},1,2\n".encode()
    app.button(key="catalog.Import prices").click()
    app.file_uploader[0].set_value(("list.csv", listed, "text/csv")).run()
    assert not app.exception
    row = next(one.value for one in app.data_editor if "cached" in one.value).iloc[0]
    assert row["cached"] == f"${model.cached_input_usd_per_mtok:g} → none"
