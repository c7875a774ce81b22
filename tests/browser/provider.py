"""A small identity provider (OpenID Connect, authorization code) on this machine, for tests."""

import contextlib
import secrets
import threading
import time
from urllib.parse import parse_qsl, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.routing import Route

CLIENT = ("hydra", "client-secret-of-the-test")


class Provider:
    """Whoever clicks a name is that person; `people` are the claims of each."""

    def __init__(self, port, people):
        self.issuer, self.people = f"http://127.0.0.1:{port}", people
        self._key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self._codes = {}
        routes = [
            Route("/.well-known/openid-configuration", self._configuration),
            Route("/authorize", self._authorize),
            Route("/chosen", self._chosen),
            Route("/token", self._token, methods=["POST"]),
            Route("/keys", self._keys),
        ]
        config = uvicorn.Config(Starlette(routes=routes), port=port, log_level="error")
        self.server = uvicorn.Server(config)

    async def _configuration(self, _request):
        names = {"authorization": "authorize", "token": "token"}
        ends = {f"{name}_endpoint": f"{self.issuer}/{path}" for name, path in names.items()}
        return JSONResponse(
            {
                "issuer": self.issuer,
                **ends,
                "jwks_uri": f"{self.issuer}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    async def _authorize(self, request):
        asked = dict(request.query_params)
        assert asked["client_id"] == CLIENT[0]
        links = [
            f"<a href='/chosen?{urlencode({**asked, 'who': name})}'>{name}</a>"
            for name in self.people
        ]
        return HTMLResponse(f"<!doctype html><title>Provider</title>{' '.join(links)}")

    async def _chosen(self, request):
        asked = request.query_params
        code = secrets.token_urlsafe()
        self._codes[code] = (asked["who"], asked.get("nonce"))
        answer = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{answer}")

    async def _token(self, request):
        given = dict(parse_qsl((await request.body()).decode()))
        name, nonce = self._codes.pop(given["code"])
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT[0], "iat": now, "exp": now + 300}
        claims |= {"sub": f"subject-of-{name}", **self.people[name]}
        if nonce:
            claims["nonce"] = nonce
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self._key)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": token})

    async def _keys(self, _request):
        return JSONResponse({"keys": [self._key.as_dict(private=False)]})


@contextlib.contextmanager
def provider(port, people):
    """A provider that runs as long as the block."""
    made = Provider(port, people)
    thread = threading.Thread(target=made.server.run, daemon=True)
    thread.start()
    while not made.server.started:
        time.sleep(0.05)
    try:
        yield made
    finally:
        made.server.should_exit = True
        thread.join(10)


def secrets_toml(made, port):
    """The secrets file of a console on `port` that signs people in there."""
    return f"""\
[auth]
redirect_uri = "http://127.0.0.1:{port}/oauth2callback"
cookie_secret = "{secrets.token_urlsafe(48)}"
client_id = "{CLIENT[0]}"
client_secret = "{CLIENT[1]}"
server_metadata_url = "{made.issuer}/.well-known/openid-configuration"
"""
