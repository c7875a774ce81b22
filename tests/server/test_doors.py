"""Who may ask what, from where."""

import pytest

from hydra_core.base.errors import AccessError
from hydra_core.server.callers import TokenFile, TokenFileError, new_token, parse_tokens
from hydra_core.server.run import build
from hydra_core.server.settings import Settings
from hydra_core.store.roles import Role
from tests.server.conftest import CATALOG, EASY, asked


@pytest.fixture
def tokens(tmp_path):
    """A file with a viewer and an editor, and their tokens."""
    made = {role: new_token(role.value, role) for role in (Role.VIEWER, Role.EDITOR)}
    path = tmp_path / "tokens.yaml"
    path.write_text("\n".join(["tokens:", *(line for _, line in made.values())]))
    return path, {role: token for role, (token, _) in made.items()}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_an_address_others_can_reach_needs_tokens():
    with pytest.raises(AccessError, match="--tokens"):
        build(Settings(str(CATALOG), host="0.0.0.0"))


def test_without_sign_in_strangers_get_decisions_only(make, upstream):
    client = make(host="0.0.0.0", insecure=True)
    assert client.post("/v1/decision", json=asked(EASY)).status_code == 200
    assert client.post("/v1/chat/completions", json=asked(EASY)).status_code == 403
    assert upstream.seen == []


def test_a_token_decides_what_may_be_asked(make, tokens, upstream):
    path, by_role = tokens
    client = make(tokens=str(path))
    assert client.post("/v1/decision", json=asked(EASY)).status_code == 401
    assert client.post("/v1/decision", json=asked(EASY), headers=bearer("no")).status_code == 401
    viewer, editor = bearer(by_role[Role.VIEWER]), bearer(by_role[Role.EDITOR])
    assert client.post("/v1/decision", json=asked(EASY), headers=viewer).status_code == 200
    refused = client.post("/v1/chat/completions", json=asked(EASY), headers=viewer)
    assert refused.status_code == 403
    assert "editor" in refused.json()["error"]["message"]
    assert client.post("/v1/chat/completions", json=asked(EASY), headers=editor).status_code == 200
    assert upstream.seen[0]["headers"]["authorization"] == "Bearer secret-key"


def test_metrics_and_health_need_no_token(make, tokens):
    client = make(tokens=str(tokens[0]))
    for path in ("/metrics", "/health/live", "/health/ready"):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
def test_a_web_page_of_another_site_cannot_ask_in_somebodys_name(make, upstream, headers):
    answer = make().post("/v1/chat/completions", json=asked(EASY), headers=headers)
    assert answer.status_code == 403
    assert upstream.seen == []


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via", "X-Forwarded-Proto"])
def test_whoever_comes_through_a_proxy_without_a_token_gets_decisions_only(make, upstream, name):
    client, passed_on = make(), {name: "10.0.0.7"}
    assert client.post("/v1/decision", json=asked(EASY), headers=passed_on).status_code == 200
    refused = client.post("/v1/chat/completions", json=asked(EASY), headers=passed_on)
    assert refused.status_code == 403
    assert "decisions only" in (told := refused.json()["error"]["message"])
    assert "--tokens FILE" in told
    assert upstream.seen == []


def test_a_token_that_is_taken_out_of_the_file_is_gone_at_once(make, tokens):
    path, by_role = tokens
    client = make(tokens=str(path), upstreams="")
    viewer, editor = bearer(by_role[Role.VIEWER]), bearer(by_role[Role.EDITOR])
    text = path.read_text()
    lines = text.splitlines()
    path.write_text("\n".join(one for one in lines if "viewer" not in one))
    assert client.post("/v1/decision", json=asked(EASY), headers=viewer).status_code == 401
    assert client.post("/v1/decision", json=asked(EASY), headers=editor).status_code == 200
    path.write_text("tokens: [")
    assert client.post("/v1/decision", json=asked(EASY), headers=editor).status_code == 401
    path.unlink()
    assert client.post("/v1/decision", json=asked(EASY), headers=editor).status_code == 401
    path.write_text(text)
    assert client.post("/v1/decision", json=asked(EASY), headers=viewer).status_code == 200


def test_a_token_file_that_everybody_can_write_is_refused(tokens):
    path, _ = tokens
    path.chmod(0o666)
    with pytest.raises(TokenFileError, match="written by everybody"):
        TokenFile(path)


@pytest.mark.parametrize("name", ["ci", "a b", "x, role: publisher", '"', "}]\n- {", "ä", "yes"])
def test_a_name_cannot_add_to_the_token_file(name):
    token, line = new_token(name, Role.VIEWER)
    actors = parse_tokens(f"tokens:\n{line}\n").by_hash
    assert [(one.name, one.role) for one in actors.values()] == [(name, Role.VIEWER)]
    assert parse_tokens(f"tokens:\n{line}\n").actor(f"Bearer {token}").name == name


def test_an_address_that_is_not_served_says_which_are(make):
    client = make(upstreams="")
    answer = client.post("/chat/completions", json=asked(EASY))
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    assert message.startswith("POST /chat/completions is not served; served are /v1/chat/completi")
    answer = client.post("/v1/v1/messages", json=asked(EASY))
    assert (answer.status_code, answer.json()["type"]) == (404, "error")
    answer = client.get("/v1/decision")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["message"] == "/v1/decision does not take GET, but POST"


def test_the_rate_is_not_dodged_by_naming_another_address(make):
    client = make(rate=0.1, upstreams="")
    for number in range(3):
        headers = {"x-forwarded-for": f"10.0.0.{number}"}
        answer = client.post("/v1/decision", json=asked(EASY), headers=headers)
    assert answer.status_code == 429


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tokens: []", "names nobody"),
        ("tokens: [{name: a, role: boss, sha256: '0'}]", "one of viewer"),
        ("tokens: [{name: a, role: viewer, sha256: my-secret}]", "never the token"),
        ("tokns: []", "did you mean 'tokens'"),
    ],
)
def test_a_token_file_that_is_not_valid_lets_nobody_in(text, told):
    with pytest.raises(TokenFileError, match=told):
        parse_tokens(text)
