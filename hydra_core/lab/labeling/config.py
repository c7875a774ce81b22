"""`label.yaml`: servers, budget and rubric of a labelling run, read with every check."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import LabelError
from hydra_core.base.list_price import ListPrice
from hydra_core.base.reading.fields import POSITIVE, SHARE, Bounds, Section, read_mapping
from hydra_core.base.reading.yaml_reader import ScalarNode

SCHEMA: Final = "hydra.label/v1"
#: A commented configuration to start from.
EXAMPLE: Final = Path(__file__).with_name("label.example.yaml")
ROLES: Final = ("cheap", "strong", "judge", "second_judge")
_RUBRIC: Final = Path(__file__).with_name("rubric.md")
_VERDICT: Final = Path(__file__).with_name("verdict.schema.json")
#: Changes with the form in which answers are shown to the judge.
_FORM: Final = "marked headings"
_PRICE: Final = "USD per million tokens; 0 for a server of your own"
_HONOURS: Final = "honours_idempotency_key"
_SERVER_KEYS: Final = (
    *("model", "base_url", "api_key_env", "input_usd_per_mtok", "output_usd_per_mtok"),
    *("max_tokens", "concurrency"),
)
_Read = TypeVar("_Read")


class JsonMode(StrEnum):
    """How a server is asked for JSON: by schema, as any object, or in the prompt alone."""

    SCHEMA = "schema"
    OBJECT = "object"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Server:
    """One OpenAI-compatible server, the model asked there, and its price.

    Attributes:
        api_key_env: Name of the environment variable with the key; empty: none is needed.
        honours_idempotency_key: A repeated call with the same key is answered from the first one.
        body: Parameters that its requests carry besides, such as an effort.
        key_header: The header of its key, '' for what is usual.
    """

    role: str
    model: str
    base_url: str
    api_key_env: str
    price: ListPrice
    max_tokens: int
    concurrency: int
    honours_idempotency_key: bool
    json_mode: JsonMode
    body: Mapping[str, Any] = field(default_factory=dict, hash=False)
    key_header: str = ""

    def cost_usd(self, input_tokens: float, output_tokens: float, cached: float = 0.0) -> float:
        """What a call of that size costs; `cached` of the input tokens came from the cache."""
        return self.price.usd_of_one(input_tokens, output_tokens, cached)


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """A run's settings.

    Attributes:
        servers: By role: cheap, strong, judge and, where judges are compared, second_judge.
        dimensions: Score names of the verdict schema, in its order.
        label_tiers: Context tiers that are answered and judged.
        synthetic_default: Label of the other tiers, in [0, 1].
        stability_share, agreement_share: Share of messages judged again, or by the second judge.
    """

    servers: Mapping[str, Server]
    rubric: str
    verdict_schema: Mapping[str, Any]
    dimensions: tuple[str, ...]
    budget_usd: float
    label_tiers: tuple[int, ...]
    synthetic_default: float
    stability_share: float
    agreement_share: float

    @property
    def recipe(self) -> str:
        """SHA-256 of all that decides a label: rubric, schema, models, lengths, tiers."""
        parts = {
            "rubric": self.rubric,
            "form": _FORM,
            "schema": self.verdict_schema,
            "models": {role: [s.model, s.max_tokens] for role, s in self.servers.items()},
            "tiers": [*self.label_tiers, self.synthetic_default],
            "shares": [self.stability_share, self.agreement_share],
        }
        return text_sha256(json.dumps(parts, sort_keys=True))


def load_config(path: Path) -> LabelConfig:
    """Read a `label.yaml`.

    Raises:
        LabelError: Every problem found, with its line.
        OSError: The file or one it names cannot be read.
    """
    return read_settings(path, SCHEMA, _config)


def read_settings(path: Path, schema: str, read: Callable[[Section, Path], _Read | None]) -> _Read:
    """Read a YAML file of settings.

    Args:
        read: Makes the settings from the file's mapping and its folder; None where it found a
            problem.

    Raises:
        LabelError: Every problem found, with its line.
        OSError: The file or one it names cannot be read.
    """
    form = f"begin with schema: {schema}"
    root, problems = read_mapping(path.read_text(encoding="utf-8"), form)
    found = None if root is None else read(root, path.parent)
    if problems.found or found is None:
        raise LabelError(str(path), problems.listed())
    return found


def _config(top: Section, folder: Path) -> LabelConfig | None:
    top.known(
        ("schema", "budget_usd", "synthetic_default", "label_tiers", "stability_share")
        + ("agreement_share", "allow_judge_as_arm", "rubric", "verdict_schema", "servers")
    )
    top.schema(SCHEMA)
    budget = top.number("budget_usd", POSITIVE, "the most the calls may cost")
    default = top.number("synthetic_default", SHARE, "the paper's is 0.8", required=False)
    stability = top.number("stability_share", SHARE, "0.05 is usual", required=False)
    agreement = top.number("agreement_share", SHARE, "0.1 is usual", required=False)
    tiers = _tiers(top)
    servers = _servers(top)
    rubric = _file(top, "rubric", folder, _RUBRIC).read_text(encoding="utf-8")
    schema, dimensions = _verdict(top, _file(top, "verdict_schema", folder, _VERDICT))
    if top.problems.found or budget is None:
        return None
    return LabelConfig(
        servers, rubric, schema, dimensions, budget, tiers,
        0.8 if default is None else default, stability or 0.0, agreement or 0.0,
    )  # fmt: skip


def _tiers(top: Section) -> tuple[int, ...]:
    if "label_tiers" not in top.node.entries:
        return (3,)
    nodes = top.items("label_tiers", "a list of 1, 2 and 3", limit=3)
    values = [n.value if isinstance(n, ScalarNode) else None for n in nodes]
    if not all(value in (1, 2, 3) and not isinstance(value, bool) for value in values):
        top.wrong("label_tiers", "must hold 1, 2 or 3", "[3] is the paper's")
    return tuple(sorted({value for value in values if isinstance(value, int)}))


def _file(top: Section, key: str, folder: Path, default: Path) -> Path:
    name = top.text(key, "default, or a file's name", required=False) or "default"
    path = default if name == "default" else folder / name
    if not path.is_file():
        top.wrong(key, f"there is no file {path}", "write default for the shipped one")
        return default
    return path


def _verdict(top: Section, path: Path) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The verdict schema and the score names it asks for."""
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
        scores = schema["properties"]["A"]
        if "$ref" in scores:
            scores = schema["$defs"][str(scores["$ref"]).rpartition("/")[2]]
        names = tuple(map(str, scores["required"]))
        if names and schema["type"] == "object":
            return schema, names
    except (ValueError, KeyError, TypeError):
        pass
    remedy = "start from the shipped verdict.schema.json"
    top.wrong("verdict_schema", f"{path.name} does not say which scores A and B get", remedy)
    return {}, ()


def _servers(top: Section) -> dict[str, Server]:
    section = top.section("servers", "one entry each for cheap, strong and judge", keys=ROLES)
    if section is None:
        return {}
    found = {}
    for role in ROLES:
        one = section.section(role, "a server", required=role != "second_judge")
        if one is not None and (server := read_server(one, role, at_once=8, most_tokens=None)):
            found[role] = server
    _refuse_arm_as_judge(top, section, found)
    return found


def read_server(
    one: Section, role: str, *, at_once: int, most_tokens: int | None, mode: JsonMode | None = None
) -> Server | None:
    """The server of one section; None with a problem recorded.

    Args:
        at_once: Calls at a time where the section does not say.
        most_tokens: Longest answer where it does not say; None where it must.
        mode: How it is asked for JSON; None where the section says that.
    """
    one.known(_SERVER_KEYS if mode else (*_SERVER_KEYS, _HONOURS, "json_mode"))
    model = one.text("model", "the model's name on the server")
    url = one.text("base_url", "such as https://host/v1")
    if url and not url.startswith(("http://", "https://")):
        one.wrong("base_url", "must begin with http:// or https://", "such as https://host/v1")
    key = one.text("api_key_env", "NAME of an environment variable", required=False)
    inward, outward = (
        one.price(f"{way}_usd_per_mtok", _PRICE, allowed=Bounds(0.0)) for way in ("input", "output")
    )
    tokens = whole(one, "max_tokens", most_tokens, Bounds(16, 1e6))
    calls = whole(one, "concurrency", at_once, Bounds(1, 512))
    repeats = mode is None and flag(one, _HONOURS)
    if mode is None:
        remedy = "schema, object or none"
        mode = one.choice("json_mode", JsonMode, remedy, required=False) or JsonMode.SCHEMA
    if tokens is None or calls is None or inward is None or outward is None:
        return None
    price = ListPrice(inward, outward)
    return Server(role, model, url, key, price, tokens, calls, repeats, mode)


def whole(one: Section, key: str, default: int | None, allowed: Bounds) -> int | None:
    """A whole number, `default` where the key may be absent and is."""
    if default is not None and key not in one.node.entries:
        return default
    return one.integer(key, allowed, "a whole number")


def flag(one: Section, key: str) -> bool:
    """true or false; false where it is not given."""
    return bool(one.flag(key, "true or false", required=False))


def _refuse_arm_as_judge(top: Section, section: Section, servers: Mapping[str, Server]) -> None:
    key = "allow_judge_as_arm"
    if flag(top, key):
        return
    arms = {servers[role].model for role in ("cheap", "strong") if role in servers}
    for role in ("judge", "second_judge"):
        if role in servers and servers[role].model in arms:
            remedy = f"take a judge of another family, or write {key}: true"
            section.wrong(role, f"{servers[role].model!r} is one of the answering models", remedy)
