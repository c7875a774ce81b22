"""The settings of `serve`, and the rule of which addresses it may listen on."""

import json
import os
from dataclasses import asdict, dataclass
from typing import Final

from hydra_core.base.addresses import require_safe

#: The model name that asks for a route.
AUTO: Final = "auto"
#: How the processes of one service get their settings.
VARIABLE: Final = "HYDRA_SERVE"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one service. Keys are not among them: upstreams name their variables.

    Attributes:
        catalog: A YAML file, or `store:NAME` for the store's newest published revision.
        upstreams: Upstreams file; '' for decisions only.
        log: Folder of the decision log; '' for none.
        log_text: Whether messages themselves go into the log.
        tokens: Token file; '' for none.
        insecure: Serve a non-loopback address without tokens, for decisions only.
        explore_share: Share of decisions that may try another model, 0 for none.
        explore_all: Share of decisions that may try any model that can serve the request.
        explore_floor: Least predicted success of a model that may be tried.
        explore_budget_usd: What tried requests may cost a day.
        canary: A second catalog, as `catalog`, for a share of the conversations; '' for none.
        canary_share: In (0, 1).
        canary_limit: So many times dearer or slower stops it; 0 for never.
        rate: Requests a second of one caller in each worker, 0 for no limit.
        stop_s: What answers on their way may take once the service was told to stop.
        not_ready_s: How long it is not ready before that, and still takes requests.
        queue: Requests that may wait to be decided; the next one is refused with 503.
        queue_s: What has waited so long is refused as well.
        log_level: What the service logs of itself: debug, info, warning or error.
    """

    catalog: str
    upstreams: str = ""
    host: str = "127.0.0.1"
    port: int = 8600
    workers: int = 1
    redis: str = ""
    log: str = ""
    log_text: bool = False
    tokens: str = ""
    insecure: bool = False
    bundle: str = ""
    explore_share: float = 0.0
    explore_all: float = 0.0
    explore_floor: float = 0.5
    explore_budget_usd: float = 1.0
    canary: str = ""
    canary_share: float = 0.1
    canary_limit: float = 2.0
    canary_look_s: float = 5.0
    max_body_mb: float = 20.0
    rate: float = 0.0
    reload_s: float = 0.5
    spans: bool = False
    stop_s: int = 30
    not_ready_s: float = 3.0
    queue: int = 64
    queue_s: float = 1.0
    log_level: str = "info"


def to_text(settings: Settings) -> str:
    """As the variable holds it."""
    return json.dumps(asdict(settings))


def from_environment() -> Settings:
    """The settings that the starting process left in HYDRA_SERVE."""
    return Settings(**json.loads(os.environ[VARIABLE]))


def require_safe_address(settings: Settings) -> None:
    """Refuse an address that others can reach while nobody has to say who they are."""
    require_safe(
        settings.host,
        proof=bool(settings.tokens),
        insecure=settings.insecure,
        remedy="Give --tokens FILE (the verb token makes one)",
    )
