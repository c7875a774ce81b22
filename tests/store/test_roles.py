import pytest

from hydra_core.base.errors import AccessError
from hydra_core.store import Action, Actor, Role, Roles, load_roles, require, roles_of, roles_path

FILE = """\
default: viewer
users:
  ana@example.org: publisher
  Eve@Example.org: editor
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "roles.yaml"


def claims(email="", verified=True, **more):
    return {"email": email, "email_verified": verified, "sub": "17", **more}


def test_a_verified_address_has_the_role_of_the_file_whatever_its_case(path):
    path.write_text(FILE)
    roles = load_roles(path)
    ana = Actor("ANA@example.org", Role.PUBLISHER, True)
    assert roles.signed_in(claims("ANA@example.org")) == ana
    assert roles.signed_in(claims(" eve@example.org ")).role is Role.EDITOR
    assert roles.signed_in(claims("who@example.org")).role is Role.VIEWER


@pytest.mark.parametrize("verified", [None, False, "false", "true", 0, 1, "", []])
def test_an_address_that_nobody_verified_names_nobody(path, verified):
    path.write_text(FILE)
    actor = load_roles(path).signed_in(claims("ana@example.org", verified))
    assert actor == Actor("sub:17", Role.VIEWER, True)


def test_an_address_without_the_claim_names_nobody(path):
    path.write_text(FILE)
    found = load_roles(path).signed_in({"email": "ana@example.org", "sub": "17"})
    assert (found.name, found.role) == ("sub:17", Role.VIEWER)


def test_an_issuer_may_be_trusted_without_the_claim_but_not_against_it(path):
    path.write_text(FILE + "trusted_issuers: [https://idp.example.org]\n")
    roles, issuer = load_roles(path), {"iss": "https://idp.example.org"}
    assert roles.signed_in({"email": "ana@example.org", **issuer}).role is Role.PUBLISHER
    assert roles.signed_in(claims("ana@example.org", False, **issuer)).role is Role.VIEWER
    other = {"email": "ana@example.org", "sub": "17", "iss": "https://other.example.org"}
    assert roles.signed_in(other).role is Role.VIEWER


def test_a_subject_is_never_taken_for_an_address_or_an_account(path):
    path.write_text(FILE + "  deploy: publisher\n  sub:17: editor\n")
    roles = load_roles(path)
    for subject in ("ana@example.org", "deploy"):
        assert roles.signed_in({"sub": subject}).role is Role.VIEWER
    assert roles.signed_in({"sub": "17"}).role is Role.EDITOR
    assert roles.signed_in(claims("deploy")).role is Role.EDITOR  # no address: the subject's role


@pytest.mark.parametrize("sub", ["", " ", None, 17])
def test_a_sign_in_that_names_nobody_is_refused(path, sub):
    with pytest.raises(AccessError, match="names neither"):
        load_roles(path).signed_in({"sub": sub, "email": "ana@example.org"})


@pytest.mark.parametrize(
    "name",
    ["ana@example.org", " ANA@EXAMPLE.ORG ", "аna@example.org", "ana@exаmple.org"]
    + [
        "ana@exampIe.org",
        "ana@examp1e.org",
        "ana @example.org",
        "ana@example.org.",
        "àna@example.org",
    ],
)
def test_a_stated_name_is_never_one_of_the_file(path, name):
    path.write_text(FILE)
    with pytest.raises(AccessError, match="roles file"):
        load_roles(path).stated(name)


def test_with_a_file_whoever_is_not_named_looks_on(path):
    path.write_text("users: {ana@example.org: publisher}\n")
    roles = load_roles(path)
    assert roles.stated("guest").role is Role.VIEWER
    assert roles.account("root").role is Role.VIEWER
    assert roles.signed_in(claims("who@example.org")).role is Role.VIEWER


def test_without_a_file_this_machine_publishes_and_a_sign_in_looks(path):
    roles = load_roles(path)
    assert roles.stated("me").role is Role.PUBLISHER
    assert roles.account("me").role is Role.PUBLISHER
    assert roles.signed_in(claims("me@example.org")).role is Role.VIEWER


def test_an_account_has_the_role_of_the_file(path):
    path.write_text("users: {deploy: publisher}\n")
    assert load_roles(path).account("deploy") == Actor("deploy", Role.PUBLISHER, True)


@pytest.mark.parametrize("named", ["", "nowhere.yaml", "link.yaml"])
def test_a_file_that_is_asked_for_and_missing_lets_nobody_in(tmp_path, named):
    (tmp_path / "link.yaml").symlink_to(tmp_path / "gone.yaml")
    environ = {"HYDRA_ROLES": str(tmp_path / named) if named else ""}
    with pytest.raises(AccessError, match="nobody is let in"):
        roles_of(tmp_path, environ)
    assert roles_of(tmp_path, {}) == Roles()


def test_a_link_to_nowhere_in_the_workspace_lets_nobody_in(tmp_path):
    (tmp_path / "roles.yaml").symlink_to(tmp_path / "gone.yaml")
    with pytest.raises(AccessError, match="leads nowhere"):
        roles_of(tmp_path, {})


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("users: {a: publsher}", "did you mean 'publisher'"),
        ("users: {a: 3}", "must be one of viewer, editor, publisher"),
        ("defualt: viewer", "did you mean 'default'"),
        ("trusted_issuers: [http://idp.example.org]", "https addresses"),
        ("trusted_issuers: https://idp.example.org", "must be a list"),
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


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x\u202ey", "x" * 201, "x\ufe0f", "\u3164x"])
def test_a_name_is_visible(path, name):
    with pytest.raises(AccessError, match="visible characters"):
        load_roles(path).stated(name)


def may(role, action):
    try:
        require(Actor("x", role), action)
    except AccessError:
        return False
    return True


def test_each_role_includes_the_ones_before():
    allowed = {role: {action for action in Action if may(role, action)} for role in Role}
    assert allowed[Role.VIEWER] == {Action.READ}
    assert allowed[Role.EDITOR] == {
        Action.READ,
        Action.DRAFT,
        Action.NOTE,
        Action.KEEP_FLIGHT,
        Action.RATE,
        Action.PIN,
        Action.IMPORT,
        Action.SCORE,
        Action.LEARN,
        Action.MAKE_CATALOG,
        Action.LABEL,
        Action.WRITE,
        Action.DEMO,
    }
    assert allowed[Role.PUBLISHER] == set(Action)


def test_the_file_lies_in_the_workspace_or_where_the_environment_says(tmp_path):
    assert roles_path(tmp_path, {}) == tmp_path / "roles.yaml"
    assert roles_path(tmp_path, {"HYDRA_ROLES": "/etc/roles.yaml"}).as_posix() == "/etc/roles.yaml"
