"""Where each model of the catalog is served: an upstreams file (docs/deploy.md, guide/effort.md).

It names the variable that holds a key, never the key; where nothing is said a server speaks chat.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.base.reading.fields import Bounds, Section, read_mapping
from hydra_core.base.reading.yaml_reader import MapNode, ScalarNode, plain, shown
from hydra_core.catalog.schema import read_catalog_text
from hydra_core.server.wire import Form

SCHEMA: Final = "hydra.upstreams/v1"
#: What the router reads of a request, or sets in it: no entry of an upstream may.
_ROUTED: Final = (
    "model", "messages", "input", "system", "instructions", "tools", "functions", "stream",
    "stream_options", "n", "max_tokens", "max_completion_tokens", "max_output_tokens", "hydra",
)  # fmt: skip
AUTHORIZATION: Final = "authorization"
X_API_KEY: Final = "x-api-key"
_SECRET: Final = re.compile(r"key|token$|secret|password|authorization|credential", re.IGNORECASE)
_MOST_BODY: Final = 50
_SECONDS: Final = Bounds(0.0, 3600.0, above=True)


class UpstreamsError(ProblemsError):
    """An upstreams file that is not valid, or does not serve what the catalog routes to."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds until a connection, the first byte of an answer, and the next byte."""

    connect_s: float = 2.0
    first_byte_s: float = 60.0
    idle_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Served:
    """How a server is asked for one model of the catalog.

    Attributes:
        name: What the server calls the model.
        bodies: Form -> parameters that every such request carries, such as its effort. They are
            not logged.
        client_may_set: Those of them in which a request's own value wins.
    """

    name: str
    bodies: Mapping[Form, Mapping[str, Any]] = field(default_factory=dict)
    client_may_set: frozenset[str] = frozenset()

    def asked(self, body: Mapping[str, Any], form: Form) -> dict[str, Any]:
        """A client's request as the server gets it."""
        kept = {key: body[key] for key in self.client_may_set if key in body}
        return {**body, **self.bodies.get(form, {}), **kept, "model": self.name}


@dataclass(frozen=True, slots=True)
class Upstream:
    """One server.

    Attributes:
        base_url: Up to and with `/v1`, no slash at the end.
        key_env: Environment variable of its key, '' for none.
        models: Catalog id -> how this server is asked for it.
        speaks: The forms of requests that it takes.
        key_header: The header of its key, '' for what is usual in the form.
    """

    name: str
    base_url: str
    key_env: str
    models: Mapping[str, Served]
    speaks: tuple[Form, ...] = (Form.CHAT,)
    key_header: str = ""

    def key(self, environ: Mapping[str, str]) -> str:
        """Its key, '' where none is needed or it is not set."""
        return environ.get(self.key_env, "") if self.key_env else ""

    def proof(self, form: Form, key: str) -> dict[str, str]:
        """The header of its key, none where there is no key."""
        if not key:
            return {}
        name = self.key_header or (X_API_KEY if form is Form.MESSAGES else AUTHORIZATION)
        return {name: f"Bearer {key}" if name == AUTHORIZATION else key}


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Which server each model is asked of."""

    by_model: Mapping[str, Upstream] = field(default_factory=dict)
    timeouts: Timeouts = field(default_factory=Timeouts)
    source: str = "upstreams"

    def not_speaking(self, form: Form) -> frozenset[str]:
        """The models whose server does not take requests of this form."""
        return frozenset(m for m, one in self.by_model.items() if form not in one.speaks)

    def stores(self, form: Form) -> int:
        """How many servers and keys there are of this form: each stores files of its own."""
        every = self.by_model.values()
        return len({(one.base_url, one.key_env) for one in every if form in one.speaks})

    def require(self, models: Iterable[str], environ: Mapping[str, str]) -> None:
        """Make sure that every model has an upstream and its key, or raise UpstreamsError."""
        problems = []
        for model in models:
            upstream = self.by_model.get(model)
            if upstream is None:
                remedy = "add it to an upstream's models, or disable it in the catalog"
                problems.append(Problem(model, "has no upstream", remedy))
            elif upstream.key_env and not environ.get(upstream.key_env):
                remedy = "export it before the start, or leave key_env out if none is needed"
                message = f"its key is in {upstream.key_env}, which is not set"
                problems.append(Problem(model, message, remedy))
            elif not (key := environ.get(upstream.key_env, "")).isascii() or not key.isprintable():
                message = f"the key in {upstream.key_env} holds a line break or another sign"
                problems.append(Problem(model, message, "export the key alone"))
        UpstreamsError.raise_any(self.source, problems)


def load_upstreams(path: Path) -> Upstreams:
    """The upstreams in a file; ProblemsError lists all that is wrong with it."""
    return parse_upstreams(read_catalog_text(path), path.name)


def parse_upstreams(text: str, source: str = "upstreams") -> Upstreams:
    """The upstreams in `text`; UpstreamsError lists all that is not valid."""
    root, problems = read_mapping(text, f"begin with 'schema: {SCHEMA}'")
    by_model: dict[str, Upstream] = {}
    timeouts = Timeouts()
    if root is not None:
        root.known(("schema", "upstreams", "timeouts"))
        root.schema(SCHEMA)
        timeouts = _timeouts(root)
        by_model = _by_model(root)
    problems.refuse(UpstreamsError, source)
    return Upstreams(by_model, timeouts, source)


def _timeouts(root: Section) -> Timeouts:
    remedy = "such as {connect_s: 2, first_byte_s: 60, idle_s: 120}"
    section = root.section("timeouts", remedy, required=False)
    if section is None:
        return Timeouts()
    section.known(Timeouts.__slots__)
    given = {
        name: section.number(name, _SECONDS, "seconds, such as 60", required=False)
        for name in Timeouts.__slots__
    }
    return Timeouts(**{name: value for name, value in given.items() if value is not None})


def _by_model(root: Section) -> dict[str, Upstream]:
    remedy = "a list of servers with name, base_url, key_env and models"
    found: dict[str, Upstream] = {}
    for section in root.sections("upstreams", remedy, limit=100):
        upstream = _upstream(section)
        for model in upstream.models:
            if model in found:
                message = f"{model} is served by {found[model].name!r} already"
                section.wrong("models", message, "name each model once")
            found[model] = upstream
    return found


def _upstream(section: Section) -> Upstream:
    section.known(("name", "base_url", "key_env", "key_header", "speaks", "models"))
    name = section.text("name", "a short name for this server", limit=100)
    url = section.text("base_url", "such as https://api.openai.com/v1", limit=2_000).rstrip("/")
    key_env = section.text("key_env", "a variable's name", required=False, limit=200)
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname):
        section.wrong("base_url", f"must be an http(s) address, got {url[:80]!r}")
    if parts.username or parts.password:
        section.wrong("base_url", "holds a password", "name a variable with key_env instead")
    if key_env and not key_env.replace("_", "").isalnum():
        section.wrong("key_env", "must be the name of a variable", "never write the key itself")
    speaks = _forms(section)
    header = section.text("key_header", "authorization or x-api-key", required=False, limit=100)
    if header not in ("", AUTHORIZATION, X_API_KEY):
        section.wrong("key_header", f"must be {AUTHORIZATION} or {X_API_KEY}", "or leave it out")
    return Upstream(name, url, key_env, _served(section, speaks), speaks, header)


def _forms(section: Section) -> tuple[Form, ...]:
    if section.node.get("speaks") is None:
        return (Form.CHAT,)
    remedy, limit = f"a list of {', '.join(Form)}", len(Form)
    found = section.texts("speaks", remedy, list(Form).__contains__, "{} is no form", limit=limit)
    if not found:
        section.wrong("speaks", "names no form", remedy)
    return tuple(map(Form, found))


def _served(section: Section, speaks: tuple[Form, ...]) -> dict[str, Served]:
    remedy = "catalog id: the upstream's own name of the model"
    listed = section.section("models", remedy)
    found: dict[str, Served] = {}
    for model, (key, value) in ({} if listed is None else listed.node.entries).items():
        place = section.at(f"models.{model[:60]}")
        given = value.value if isinstance(value, ScalarNode) else None
        if isinstance(value, MapNode):
            found[model] = _with_body(section.inside(value, place), speaks)
        elif isinstance(given, str) and given.strip():
            found[model] = Served(given)
        else:
            message = f"must be a name, got {shown(value)}"
            section.problems.add(place, key.line, message, remedy)
    return found


def _with_body(section: Section, speaks: tuple[Form, ...]) -> Served:
    """A model whose requests carry parameters of their own; messages never show their values."""
    section.known(("model", "body", "client_may_set"))
    name = section.text("model", "the upstream's own name of the model", limit=500)
    remedy = "the parameters of its requests, such as {reasoning_effort: high}"
    inside = section.section("body", remedy)
    if inside is None:
        return Served(name)
    values = inside.node.entries.items()
    by_form = all(k in list(Form) and isinstance(v, MapNode) for k, (_, v) in values)
    if len(speaks) > 1 and not by_form:
        say = "{" + ", ".join(f"{form}: {{...}}" for form in speaks) + "}"
        section.wrong("body", "does not say for which form it is", f"write {say}")
        return Served(name)
    bodies = {}
    for form in speaks:
        own = (
            inside.section(form, f"{form}: {{}} where nothing is to be set") if by_form else inside
        )
        if own is not None:
            _check_parameters(own)
            bodies[form] = plain(own.node)
    known = {parameter for body in bodies.values() for parameter in body}
    remedy = "a list of parameters of body, such as [reasoning_effort]"
    fault = "{} is no parameter of body"
    open_to = section.texts("client_may_set", remedy, known.__contains__, fault, limit=_MOST_BODY)
    return Served(name, bodies, frozenset(open_to))


def _check_parameters(inside: Section) -> None:
    names = tuple(inside.node.entries)
    if len(names) > _MOST_BODY:
        inside.wrong(names[_MOST_BODY], f"is one of {len(names)}", f"give at most {_MOST_BODY}")
    for parameter in names:
        if parameter in _ROUTED:
            inside.wrong(parameter, "is the request's own or the router's", "leave it out")
        elif _SECRET.search(parameter):
            inside.wrong(parameter, "looks like a secret", "name a variable with key_env instead")
