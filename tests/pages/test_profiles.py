"""The Profiles page: evidence to capabilities, and what moves routing."""

import pytest

from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog import load_catalog, parse_catalog
from hydra_core.catalog.editing import evidence_grid as grid
from tests.pages.store_steps import ANA, FILE, NAME, opened, shown

PAGE = "pages/configure/catalog.py?part=profiles"
HERE = {"set": "console_demo", "catalog": "paper_five"}
VIEW = "profiles.view"
SHIPPED = CATALOGS / "mixed_2024.yaml"


@pytest.fixture(autouse=True)
def _ana(monkeypatch):
    monkeypatch.setenv("HYDRA_OPERATOR", "Ana")


def opened_at(open_page, view, **params):
    app = open_page(PAGE, **{**HERE, **params})
    app.session_state[VIEW] = view
    return app.run()


def test_evidence_shows_importance_weights_and_rates(open_page):
    app = open_page(PAGE, **HERE)
    assert not app.exception
    frame = app.data_editor[0].value
    assert {"importance", "w.reasoning", "s.gpt-5.4"} <= set(frame.columns)
    assert len(frame) == 9


def order(app):
    return list(app.data_editor[0].proto.column_order)


def test_rates_and_weights_take_turns_where_both_do_not_fit(open_page):
    app = open_page(PAGE, **HERE)
    assert order(app)[:3] == ["tick", "id", "importance"]
    assert "s.gpt-5.4" in order(app)
    assert "w.reasoning" not in order(app)
    app.segmented_control(key="profiles.evidence.part").set_value(
        "What each benchmark exercises"
    ).run()
    assert not app.exception
    assert "w.reasoning" in order(app)
    assert "s.gpt-5.4" not in order(app)


def test_capabilities_by_hand_are_marked(open_page):
    app = opened_at(open_page, "Capabilities", set="paper_swebench", catalog="paper_five_published")
    assert not app.exception
    frame = app.data_editor[0].value
    assert (frame["hand"] != "").all()


def test_bands_from_the_sets_own_queries_go_into_the_draft(open_page):
    app = opened_at(open_page, "Score bands, weights")
    before = app.data_editor[0].value
    preview = next(one.value for one in app.dataframe if "then_above" in one.value)
    assert (preview["then_above"] <= 5.5).all()  # the 95th percentile, ties apart
    assert preview["now_above"].max() > 10
    assert "no model is eligible" in shown(app)
    app.button(key="profiles.bands").click().run()
    assert not app.exception
    after = app.data_editor[0].value
    assert (after["hi"] != before["hi"]).any()
    assert app.button(key="profiles.bands").disabled
    low = float(preview.loc[0, "then_band"].split(" to ")[0])
    assert float(after.loc[0, "lo"]) == pytest.approx(low, abs=1e-3)


def test_capabilities_set_by_hand_keep_their_place_on_new_bands(open_page, workspace):
    link = {"set": "paper_swebench", "catalog": "paper_five_published"}
    app = opened_at(open_page, "Score bands, weights", **link)
    assert not app.exception
    assert not app.error  # nobody did anything wrong
    assert "keep their place on the score band" in shown(app)
    app.button(key="profiles.bands").click().run()
    assert not app.error
    saved = opened(workspace).drafts.find(NAME, ANA)
    before, after = parse_catalog(FILE), parse_catalog(saved.text)
    for old, new in zip(before.models, after.models, strict=True):
        for k, dimension in enumerate(before.dimensions):
            place = (old.overrides[dimension] - before.bands[k].lo) / before.bands[k].width
            moved = (new.overrides[dimension] - after.bands[k].lo) / after.bands[k].width
            assert moved == pytest.approx(place, abs=1e-4) or new.overrides[dimension] in (0, 1)


def test_sensitivity_names_models_out_of_reach(open_page):
    app = opened_at(open_page, "Sensitivity")
    assert not app.exception
    assert "can never be chosen" in shown(app)
    assert len(app.dataframe) == 2


def test_every_number_of_a_success_profile_has_a_cell(open_page):
    app = opened_at(open_page, "Success profiles", set="mixed_2024", catalog="mixed_2024")
    assert not app.exception
    frame = app.data_editor[0].value
    assert list(frame["model"])[1:] == list(load_catalog(SHIPPED).success_profiles.models)
    assert "reasoning@3" in order(app)
    assert "cost_usd" not in order(app)


@pytest.mark.parametrize(
    ("view", "column", "wrong"),
    [
        ("Capabilities", "debugging", "about a half"),
        ("Score bands, weights", "hi", "high"),
        ("Success profiles", "intercept", "high"),
    ],
)
def test_a_wrong_value_leaves_its_table_to_correct_it(open_page, workspace, view, column, wrong):
    at = {"set": "mixed_2024", "catalog": "mixed_2024"}
    app = opened_at(open_page, view, **at)
    before = app.data_editor[0].value
    edit = {
        "Capabilities": grid.edit_capabilities,
        "Success profiles": grid.edit_success,
    }.get(view, lambda text, cells: grid.edit_scales(text, {"reasoning": cells[0]}))
    text = edit(SHIPPED.read_text(encoding="utf-8"), {0: {column: wrong}})
    store = opened(workspace)
    started = store.drafts.start(
        "mixed_2024", SHIPPED.read_text(encoding="utf-8"), actor=ANA, base_revision=0
    )
    store.drafts.save(started, text, actor=ANA, unfinished=True)
    app = opened_at(open_page, view, **at)
    assert not app.exception
    assert f"{wrong!r}" in shown(app)
    after = app.data_editor[0].value
    assert after.loc[0, column] == wrong
    assert len(after) == len(before)
    others = after.loc[1:, column]
    if view == "Capabilities":  # all derived, and there is nothing to derive them from now
        assert others.isna().all()
    else:
        assert others.str.strip().tolist() == before.loc[1:, column].str.strip().tolist()


def test_a_catalog_without_success_profiles_says_where_they_come_from(open_page):
    app = opened_at(open_page, "Success profiles")
    assert not app.exception
    assert "No success profiles in this catalog" in shown(app)
