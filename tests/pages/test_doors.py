"""What a page lets somebody do, by who they are and how they came."""

import pytest
from streamlit import config
from streamlit.runtime.context import ContextProxy, StreamlitHeaders

from hydra_core.store import open_store
from tests.pages.store_steps import NAME, shown

ROLES = "users: {ana@example.org: publisher}\n"


def publish_button(app):
    return next(one for one in app.button if one.key == "ship.publish")


def role(app):
    return next(m.value for m in app.markdown if "**" in m.value and "·" in m.value).split("· ")[1]


@pytest.fixture
def option():
    before = {}

    def put(name, value):
        before.setdefault(name, config.get_option(name))
        config.set_option(name, value)

    yield put
    for name, value in before.items():
        config.set_option(name, value)


def test_with_nothing_configured_this_machine_publishes(open_page):
    app = open_page("pages/decide/releases.py?part=publish", catalog=NAME)
    assert role(app) == "publisher"
    publish_button(app).click().run()
    assert "Revision 1 is published" in shown(app)


@pytest.mark.parametrize("typed", ["ana@example.org", "ANA@example.org ", "аna@example.org"])
def test_a_typed_name_of_the_roles_file_is_refused(workspace, open_page, typed):
    (workspace / "roles.yaml").write_text(ROLES)
    app = open_page("pages/decide/releases.py?part=publish", catalog=NAME)
    before = app.text_input(key="who.name.typed").value
    app.text_input(key="who.name.typed").set_value(typed).run()
    assert "stands in the roles file" in shown(app)
    assert app.text_input(key="who.name.typed").value == before
    assert role(app) == "viewer"
    assert publish_button(app).disabled
    assert open_store(workspace).catalogs() == {}


def test_a_stated_name_stays_in_its_own_session(open_page):
    first = open_page("pages/operate/home.py")
    first.text_input(key="who.name.typed").set_value("Mia").run()
    assert first.text_input(key="who.name.typed").value == "Mia"
    second = open_page("pages/operate/home.py")
    assert second.text_input(key="who.name.typed").value != "Mia"


def test_without_a_sign_in_but_served_to_others_everybody_looks_on(open_page, monkeypatch, option):
    monkeypatch.setenv("HYDRA_INSECURE_NO_SIGN_IN", "1")
    option("server.address", "0.0.0.0")
    app = open_page("pages/decide/releases.py?part=publish", catalog=NAME)
    assert role(app) == "viewer"
    assert publish_button(app).disabled


@pytest.mark.parametrize("name", ["X-Forwarded-For", "forwarded", "Via"])
def test_through_a_proxy_without_a_sign_in_everybody_looks_on(open_page, monkeypatch, name):
    sent = StreamlitHeaders([(name, "10.0.0.7")])
    monkeypatch.setattr(ContextProxy, "headers", property(lambda _: sent))
    app = open_page("pages/decide/releases.py?part=publish", catalog=NAME)
    assert role(app) == "viewer"
    assert publish_button(app).disabled


@pytest.mark.parametrize("address", [None, "0.0.0.0", "10.0.0.7"])
def test_no_page_opens_on_an_address_of_the_network(open_page, option, address):
    option("server.address", address)
    app = open_page("pages/decide/releases.py?part=publish", catalog=NAME)
    assert "can be reached from other machines" in shown(app)
    assert not app.button


@pytest.mark.parametrize("text", ["[auth]\nclient_id = x\n", "[auth]\na=1\na=2\n"])
def test_no_page_opens_with_a_broken_secrets_file(open_page, option, tmp_path, text):
    (tmp_path / "secrets.toml").write_text(text)
    option("secrets.files", [str(tmp_path / "secrets.toml")])
    app = open_page("pages/decide/releases.py?part=publish", catalog=NAME)
    assert "secrets.toml" in shown(app)
    assert not app.button


def test_no_page_opens_without_the_roles_that_were_asked_for(open_page, monkeypatch, tmp_path):
    monkeypatch.setenv("HYDRA_ROLES", str(tmp_path / "none.yaml"))
    app = open_page("pages/decide/releases.py?part=publish", catalog=NAME)
    assert "nobody is let in" in shown(app)
    assert not app.button
