"""Only "no such file" means no sign-in."""

import pytest

from hydra_core.base.errors import AccessError
from hydra_core.console.access.sign_in import SignIn, read_sign_in

RIGHT = """\
[auth]
redirect_uri = "https://hydra.example.org/oauth2callback"
cookie_secret = "0123456789abcdef0123456789abcdef"
client_id = "hydra"
client_secret = "hush"
server_metadata_url = "https://idp.example.org/.well-known/openid-configuration"
"""


@pytest.fixture
def secrets(tmp_path):
    return tmp_path / "secrets.toml"


def test_no_file_and_no_section_are_no_sign_in(secrets):
    assert read_sign_in([str(secrets)]) is None
    secrets.write_text("[other]\na = 1\n")
    assert read_sign_in([str(secrets)]) is None


def test_a_right_section_is_a_sign_in(secrets, tmp_path):
    secrets.write_text(RIGHT)
    found = SignIn("hydra.example.org", ("",))
    assert read_sign_in([str(tmp_path / "none.toml"), str(secrets)]) == found


def test_named_providers_are_offered_by_name(secrets):
    secrets.write_text(RIGHT.replace("client_id", "[auth.okta]\nclient_id"))
    assert read_sign_in([str(secrets)]) == SignIn("hydra.example.org", ("okta",))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[auth]\nclient_id = hydra\n", "line 2"),
        (RIGHT + 'client_id = "again"\n', "line 7"),
        (RIGHT + RIGHT, "line 7"),
        ("[Auth]\n", r"write \[auth\]"),
        ("[auht]\n", r"write \[auth\]"),
        ("auth = 1\n", "not a section"),
        ("[auth]\n", "cookie_secret"),
        (RIGHT.replace("0123456789abcdef0123456789abcdef", "short"), "cookie_secret"),
        (RIGHT.replace("oauth2callback", "callback"), "redirect_uri"),
        (RIGHT.replace("client_secret", "clientsecret"), "client_secret"),
        (RIGHT.replace("client_id", "[auth.okta]\nclientid"), r"\[auth.okta\] has no client_id"),
    ],
)
def test_a_broken_file_lets_nobody_in(secrets, text, told):
    secrets.write_text(text)
    with pytest.raises(AccessError, match=told) as caught:
        read_sign_in([str(secrets)])
    assert str(secrets) in str(caught.value)


def test_an_unreadable_file_lets_nobody_in(secrets):
    secrets.mkdir()
    with pytest.raises(AccessError, match="directory"):
        read_sign_in([str(secrets)])
    secrets.rmdir()
    secrets.write_bytes(b"[auth]\nx = '\xff'\n")
    with pytest.raises(AccessError, match="can't decode"):
        read_sign_in([str(secrets)])
    secrets.unlink()
    secrets.symlink_to(secrets.with_name("gone.toml"))
    with pytest.raises(AccessError, match="No such file"):
        read_sign_in([str(secrets)])
