"""Nobody on the network gets in unless somebody configured it."""

import psutil
import pytest
from streamlit.web import cli

from hydra_core.console.access import sign_in
from hydra_core.console.access.serve import main, safe_options
from hydra_core.console.access.sign_in import SignIn
from tests.console.consoles import ROOT, console, free_port, handshake, refused, start
from tests.console.test_sign_in import RIGHT


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with console(tmp_path_factory.mktemp("workspace")) as (server, port):
        yield server, port


@pytest.fixture
def refused_here(monkeypatch, tmp_path, capsys):
    """What a console says that does not start, in this process."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path))
    monkeypatch.setattr(cli, "main", lambda *_, **__: pytest.fail("the console started"))

    def told(*options):
        with pytest.raises(SystemExit) as ended:
            main(options)
        assert ended.value.code == 1
        return capsys.readouterr().err

    return told


def test_started_with_nothing_configured_it_listens_on_loopback_only(running):
    server, port = running
    found = psutil.Process(server.pid).net_connections(kind="inet")
    listening = {(c.laddr.ip, c.laddr.port) for c in found if c.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", port)}


def test_pages_of_this_machine_connect(running):
    _, port = running
    assert handshake(port) == 101
    for name in ("localhost", "127.0.0.1"):
        at = f"{name}:{port}"
        assert handshake(port, Host=at, Origin=f"http://{at}") == 101


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example", "Origin": "http://evil.example"},  # a rebound name
        {"Host": "10.0.0.7:8501"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
    ],
    ids=str,
)
def test_a_rebound_host_and_a_foreign_origin_are_refused(running, headers):
    assert handshake(running[1], **headers) == 403


@pytest.mark.parametrize(
    "options",
    [
        ["--server.address=::"],
        ["--server.address", "127.0.0.1", "--server.address", "10.1.2.3"],
        ["--server.allowedHosts", "hydra.example.org"],
        ["--server.allowedHosts=*"],
    ],
    ids=str,
)
def test_others_are_not_served_without_a_sign_in(refused_here, options):
    told = refused_here(*options)
    assert "can be reached from other machines" in told
    assert "--insecure-no-sign-in" in told


def test_nor_by_a_console_that_is_started_as_an_operator_does(tmp_path):
    told = refused(tmp_path, "--server.address", "0.0.0.0")
    assert "can be reached from other machines" in told
    assert "--insecure-no-sign-in" in told


@pytest.mark.parametrize(
    "name", ["STREAMLIT_SERVER_ADDRESS", "STREAMLIT_SERVER_ALLOWED_HOSTS"], ids=str
)
def test_nor_where_the_environment_names_them(refused_here, monkeypatch, name):
    monkeypatch.setenv(name, "0.0.0.0")
    assert "0.0.0.0 can be reached" in refused_here()


@pytest.mark.parametrize("text", ["[auth]\nclient_id = x\n", RIGHT + 'client_id = "again"\n'])
def test_a_broken_secrets_file_stops_the_start_with_file_and_line(tmp_path, text):
    (tmp_path / ".streamlit").mkdir()
    secrets = tmp_path / ".streamlit" / "secrets.toml"
    secrets.write_text(text)
    told = refused(tmp_path, cwd=tmp_path)
    assert str(secrets) in told
    assert "line" in told


def test_missing_roles_are_said_at_the_start(tmp_path):
    server = start(free_port(), tmp_path, HYDRA_ROLES=str(tmp_path / "none.yaml"))
    try:
        assert "so nobody is let in" in server.stderr.readline()
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_without_any_option_it_is_for_this_machine(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert safe_options([])[:2] == ["--server.address", "127.0.0.1"]


def test_with_a_sign_in_it_answers_to_the_name_of_the_proxy(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(RIGHT)
    options = safe_options(["--secrets.files", str(secrets), "--server.address", "10.1.2.3"])
    following = zip(options, options[1:], strict=False)
    hosts = [value for option, value in following if option == "--server.allowedHosts"]
    assert hosts == ["localhost", "127.0.0.1", "::1", "10.1.2.3", "hydra.example.org"]


def test_every_address_is_no_host_name():
    assert sign_in.allowed_hosts("0.0.0.0", (), SignIn("a.example", ("",)))[3:] == ("a.example",)


def test_no_header_says_who_somebody_is_whatever_is_configured(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = ["--server.trustedUserHeaders", '{"X-Email": "email"}']
    options = safe_options(given)
    assert options[:2] == given
    assert options[-2:] == ["--server.trustedUserHeaders", "{}"]  # the later one counts
