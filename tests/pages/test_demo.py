"""A demo as a session sees it: its own workspace, its own address, nothing of anybody else's."""

from urllib.parse import urlencode

import pytest

from hydra_core.console.demo.copies import DEMOS
from hydra_core.console.demo.panel import STEPS
from hydra_core.store import Role, open_store
from tests.pages.moving import to
from tests.pages.store_steps import ANA, FILE, NAME, opened, priced, shown

OVERVIEW = "pages/operate/home.py"
SHIP = "pages/decide/releases.py?part=publish"
TUNE = "pages/decide/tune.py?part=by-hand"


@pytest.fixture(autouse=True)
def thrown_away():
    yield
    DEMOS.end_all()


def button(app, key):
    return next(one for one in app.button if one.key == key)


def keys(app):
    return {one.key for one in app.button}


def select(app, label):
    return next(one for one in app.selectbox if one.label == label)


def begun(open_page, step="1"):
    app = open_page(OVERVIEW, demo=step)
    assert "throw-away copy" in shown(app)
    button(app, "demo.begin").click()
    app.run()
    assert not app.exception
    return app


def only():
    (demo,) = DEMOS._demos.values()
    return demo


def folders(workspace):
    return list(workspace.glob(".demo.*"))


def test_the_address_alone_begins_nothing(workspace, open_page):
    app = open_page(OVERVIEW, demo="3")
    assert "demo.begin" in keys(app)
    assert not folders(workspace)
    assert not app.metric  # the offer stands instead of the page


def test_it_begins_on_the_storys_catalog_and_every_step_says_and_asks_something(
    workspace, open_page
):
    app = begun(open_page)
    assert "with catalog **demo**" in shown(app)
    assert "Demo copy" in shown(app)
    assert len(folders(workspace)) == 1
    for number, step in enumerate(STEPS, start=1):
        app.query_params["demo"] = f"{number}.{only().token}"
        to(app, f"{step.place.page}?{urlencode(step.place.query)}")
        app.run()
        assert not app.exception
        assert step.say in shown(app)
        assert step.do in shown(app)
        assert step.shows in shown(app)
        assert app.query_params["demo"] == f"{number}.{only().token}"


def test_next_leads_through_all_steps(workspace, open_page):
    app = begun(open_page)
    for step in STEPS[1:3]:
        button(app, "demo.next").click()
        app.run()
        assert step.say in shown(app)
    assert [one.value for one in app.title] == ["Tune"]


def test_the_step_of_changing_models_begins_at_half_the_price(open_page):
    app = begun(open_page, "6")
    asked = [one.value for one in app.number_input if "USD per Mtok" in one.label]
    assert asked == [1.5, 7.5]
    assert any("at 1.5/7.5" in one.value.replace("\\", "") for one in app.info)


def test_what_is_published_in_a_demo_is_published_in_its_copy_alone(workspace, open_page):
    store = opened(workspace)
    store.publish(NAME, FILE, actor=ANA, base_revision=0, note="real")
    app = begun(open_page, "6")
    to(app, SHIP)
    app.run()
    select(app, "Catalog").set_value(NAME).run()
    demo = only()
    demo.store.publish(
        NAME, priced(FILE, 0.5), actor=demo.owner, base_revision=1, note="in the copy"
    )
    app.run()
    assert "Revision 2" in shown(app) + badges(app)
    beside = open_page(SHIP, catalog=NAME)
    assert "Revision 1" in badges(beside)
    assert store.catalogs() == {NAME: 1}
    assert [entry.reason for entry in store.audit()] == ["real"]
    store.close()


def badges(app):
    return "\n".join(one.value for one in app.markdown)


def test_no_cache_of_a_demo_reaches_another_session(workspace, open_page):
    """The same name and the same revision number say different things in three workspaces."""
    plain = open_page(OVERVIEW)
    assert "demo.next" not in keys(plain)
    one = begun(open_page)
    first = only()
    two = open_page(OVERVIEW, demo="1")
    button(two, "demo.begin").click()
    two.run()
    second = next(demo for demo in DEMOS._demos.values() if demo is not first)
    for demo, price in ((first, 0.11), (second, 0.22)):
        demo.store.publish(NAME, priced(FILE, price), actor=demo.owner, base_revision=0, note="")
    for app in (one, two, plain):
        to(app, "pages/configure/catalog.py?part=models")
        app.run()
        select(app, "Catalog").set_value(NAME).run()
        assert not app.exception
    prices = [told_price(app) for app in (one, two, plain)]
    assert prices[:2] == [0.11, 0.22]
    assert prices[2] not in (0.11, 0.22)


def told_price(app):
    """Haiku's input price in the table of the Catalog page."""
    frame = next(f.value for f in app.dataframe if "input_usd_per_mtok" in f.value.columns)
    return float(frame.set_index("id").loc["claude-haiku-4.5", "input_usd_per_mtok"])


def test_the_pages_own_link_and_the_demos_step_stand_beside_each_other(workspace, open_page):
    app = begun(open_page)
    to(app, TUNE)
    app.run()
    app.run()
    assert app.query_params["catalog"] == "demo"
    assert app.query_params["demo"] == f"1.{only().token}"
    app.query_params["tau"] = "0.2"
    app.run()
    assert app.query_params["demo"] == f"1.{only().token}"
    assert app.number_input(key="tune.tau").value == 0.2


def test_a_reload_finds_the_demo_at_the_step_of_the_address(workspace, open_page):
    begun(open_page)
    reloaded = open_page(SHIP, demo=f"7.{only().token}")
    assert STEPS[6].say in shown(reloaded)
    without_page = open_page(OVERVIEW, demo=f"3.{only().token}")
    assert [one.value for one in without_page.title] == ["Tune"]
    assert len(folders(workspace)) == 1


def test_an_address_of_no_demo_shows_none(workspace, open_page):
    begun(open_page)
    app = open_page(OVERVIEW)
    for given in ("1.notthetokenofanydemo", "8", "x", "1.", "-1", "1." + "a" * 99):
        app.query_params["demo"] = given
        app.run()
        assert not app.exception
        assert "demo.next" not in keys(app), given


def test_an_ended_demo_never_falls_back_to_the_real_workspace(workspace, open_page):
    app = begun(open_page, "6")
    to(app, SHIP)
    app.run()
    select(app, "Catalog").set_value(NAME).run()
    DEMOS.end(only().token)
    button(app, "ship.publish").click()
    app.run()
    assert not app.exception
    assert "This demo has ended" in shown(app)
    store = open_store(workspace)
    assert store.catalogs() == {}
    assert store.audit() == ()
    store.close()
    assert not folders(workspace)


def test_reset_takes_a_fresh_copy_and_end_leaves_none(workspace, open_page):
    app = begun(open_page)
    first = only()
    first.store.publish(NAME, FILE, actor=first.owner, base_revision=0, note="")
    button(app, "demo.reset").click()
    app.run()
    assert only().token != first.token
    assert only().store.catalogs() == {"demo": 1}
    button(app, "demo.end").click()
    app.run()
    assert not app.exception
    assert "demo.next" not in keys(app)
    assert "with catalog **mixed_2024**" in shown(app)
    assert not folders(workspace)
    assert "demo" not in app.query_params


def test_a_viewer_is_offered_no_demo_and_a_forged_click_begins_none(workspace, open_page):
    (workspace / "roles.yaml").write_text("users: {ana@example.org: publisher}\n")
    app = open_page(OVERVIEW, demo="1")
    begin = button(app, "demo.begin")
    assert begin.disabled
    begin.proto.disabled = False  # a browser would not send this; a forged message can
    begin.click()
    app.run()
    assert not app.exception
    assert not folders(workspace)
    assert "needs the role editor" in shown(app)


def test_an_editor_who_becomes_a_viewer_loses_the_demo(workspace, open_page):
    (workspace / "roles.yaml").write_text("default: editor\n")
    app = begun(open_page)
    assert only().owner.role is Role.PUBLISHER
    (workspace / "roles.yaml").write_text("default: viewer\n")
    app.run()
    assert not app.exception
    assert "demo.next" not in keys(app)
    assert "with catalog **demo**" not in shown(app)
