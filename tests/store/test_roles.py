from __future__ import annotations

import pytest

from hydra_core.errors import AccessError
from hydra_core.store import Action, Actor, Role, load_roles, require, roles_path

FILE = """\
default: viewer
users:
  ana@example.org: publisher
  Eve@Example.org: editor
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "roles.yaml"


def test_names_have_the_role_of_the_file_whatever_their_case(path):
    path.write_text(FILE)
    roles = load_roles(path)
    assert roles.actor("ANA@example.org", proven=True) == Actor(
        "ANA@example.org", Role.PUBLISHER, True
    )
    assert roles.actor(" eve@example.org ", proven=True).role is Role.EDITOR
    assert roles.actor("who@example.org", proven=True).role is Role.VIEWER
    assert roles.actor("who@example.org", proven=False).role is Role.VIEWER


def test_without_a_file_a_stated_name_publishes_and_a_sign_in_looks(path):
    roles = load_roles(path)
    assert roles.actor("me", proven=False).role is Role.PUBLISHER
    assert roles.actor("me@example.org", proven=True).role is Role.VIEWER


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("users: {a: publsher}", "did you mean 'publisher'"),
        ("users: {a: 3}", "must be one of viewer, editor, publisher"),
        ("defualt: viewer", "did you mean 'default'"),
        ("default: [viewer]", "default"),
        ("users: [a]", "must be a mapping"),
        ("users: {A@x: editor, a@X: viewer}", "given twice"),
        ("users: &a {a: editor}", "anchor"),
        ("", "is empty"),
        ("{", "is not valid YAML"),
    ],
)
def test_a_wrong_file_lets_nobody_in(path, text, word):
    path.write_text(text)
    with pytest.raises(AccessError, match="nobody is let in") as caught:
        load_roles(path)
    assert word in str(caught.value)


def test_an_unreadable_file_lets_nobody_in(path):
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AccessError, match="nobody is let in"):
        load_roles(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(AccessError, match="nobody is let in"):
        load_roles(path)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x\u202ey", "x" * 201])
def test_a_name_is_visible(path, name):
    with pytest.raises(AccessError, match="visible characters"):
        load_roles(path).actor(name, proven=False)


def may(role, action):
    try:
        require(Actor("x", role), action)
    except AccessError:
        return False
    return True


def test_each_role_includes_the_ones_before():
    allowed = {role: {action for action in Action if may(role, action)} for role in Role}
    assert allowed[Role.VIEWER] == {Action.READ}
    assert allowed[Role.EDITOR] == {Action.READ, Action.DRAFT, Action.NOTE, Action.PIN}
    assert allowed[Role.PUBLISHER] == set(Action)


def test_the_file_lies_in_the_workspace_or_where_the_environment_says(tmp_path):
    assert roles_path(tmp_path, {}) == tmp_path / "roles.yaml"
    assert roles_path(tmp_path, {"HYDRA_ROLES": "/etc/roles.yaml"}).as_posix() == "/etc/roles.yaml"
