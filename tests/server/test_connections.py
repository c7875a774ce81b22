"""What somebody without a token can do with connections alone: nothing to anybody else."""

import contextlib
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest

from hydra_core.server import callers
from hydra_core.server.run import GuardedProtocol, build
from hydra_core.server.settings import Settings
from tests.server.conftest import CATALOG, EASY, asked, running


class Hasty(GuardedProtocol):
    """Has little patience and few places."""

    head_s = 0.3
    most_connections = 8


@pytest.fixture
def url():
    with running(build(Settings(str(CATALOG))), http=Hasty) as found:
        yield found


def connected(url):
    place = urlsplit(url)
    return contextlib.closing(socket.create_connection((place.hostname, place.port), 20))


def until_closed(link):
    """What comes until the other side closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := link.recv(65_536):
            found += piece
    return found


CHUNKED = b"POST /v1/decision HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
HEADS = {
    "endless trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"x-a: b\r\n" * 1_000),
    "a trailer of megabytes": (CHUNKED + b"2\r\n{}\r\n0\r\nx-a: ", b"a" * 10_000),
    "a chunk's extension of megabytes": (CHUNKED + b"2;a=", b"a" * 10_000),
    "endless headers": (b"GET /health/live HTTP/1.1\r\n", b"x-a: b\r\n" * 1_000),
    "a header of megabytes": (b"GET /health/live HTTP/1.1\r\nx-a: ", b"a" * 10_000),
    "an address of megabytes": (b"GET /", b"a" * 10_000),
}


@pytest.mark.parametrize("parts", HEADS.values(), ids=HEADS)
def test_a_head_beyond_its_size_is_refused(url, parts):
    first, more = parts
    sent = 0
    with connected(url) as link:
        link.sendall(first)
        with contextlib.suppress(ConnectionError):
            while sent < 20_000_000:
                sent += link.send(more)
        answer = until_closed(link)
    assert sent < 20_000_000
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert httpx.get(f"{url}/health/live").status_code == 200


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET /health/live HTTP/1.1\r\nhost: x\r\n"])
def test_a_head_that_does_not_come_is_waited_for_only_so_long(url, sent):
    with connected(url) as link:
        link.sendall(sent)
        assert until_closed(link).startswith(b"HTTP/1.1 408")


def test_a_head_that_comes_drop_by_drop_is_waited_for_only_so_long(url):
    with connected(url) as link, contextlib.suppress(ConnectionError):
        for _ in range(200):
            link.sendall(b"x")
            time.sleep(0.01)
        pytest.fail("it was read on and on")


def test_half_open_connections_shut_nobody_out(url):
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            link = stack.enter_context(connected(url))
            link.sendall(b"GET /health/live HTTP/1.1\r\n")
        for _ in range(3):
            answer = httpx.post(f"{url}/v1/decision", json=asked(EASY), timeout=20)
            assert answer.status_code == 200


def test_a_connection_is_used_again_with_large_and_small_heads(url):
    with httpx.Client(base_url=url) as client:
        for size in (10, 20_000, 10, 20_000, 10):
            headers = {"x-more": "a" * size}
            for _ in range(4):
                assert client.get("/health/live", headers=headers).status_code == 200
            answer = client.post("/v1/decision", json=asked("word " * size), headers=headers)
            assert answer.status_code == 200


def test_a_body_in_chunks_of_one_byte_is_read(url):
    body = asked("word " * 20_000)
    raw = httpx.Request("POST", "http://x", json=body).content
    pieces = b"".join(b"1\r\n%c\r\n" % one for one in raw)
    with connected(url) as link:
        link.sendall(CHUNKED + pieces + b"0\r\nx-trailer: fine\r\n\r\n")
        assert link.recv(100).startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_is_waited_for_only_so_long(url, monkeypatch):
    monkeypatch.setattr(callers, "BODY_S", 0.2)
    with connected(url) as link:
        head = b"POST /v1/decision HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{"
        link.sendall(head)
        answer = until_closed(link)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not come" in answer
