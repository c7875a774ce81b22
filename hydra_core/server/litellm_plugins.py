"""HyDRA inside LiteLLM: a routing plugin for pools of any size, a classifier for up to 8 models.

`HYDRA_CATALOG` names the catalog (a file, or store:NAME), which is followed as in `serve`; see
docs/deploy.md. A candidate is the catalog's model with the same id, with or without a provider in
front. LiteLLM tells a plugin neither the declared tools nor the cool-downs: tools count once they
were used in the conversation, and failed models are LiteLLM's own business.
"""

import asyncio
import os
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, Self

from hydra_core.base.errors import HydraError, RoutingError
from hydra_core.base.types import Catalog
from hydra_core.catalog import require_bundle
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.onnx_predictor import Predictor, default_predictor
from hydra_core.routing.decision import Decision
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions
from hydra_core.server.chat import read_chat
from hydra_core.server.live import LiveCatalog, source_of


class _Context(Protocol):
    """What LiteLLM gives a plugin (litellm.types.router.RoutingContext)."""

    structured_messages: list[dict[str, Any]]
    candidate_models: list[str]
    metadata: dict[str, Any]
    signals: dict[str, Any]


class Choosing:
    """One router for all plugins of a process, beside the event loop."""

    def __init__(self, live: LiveCatalog) -> None:
        self._live = live
        self._threads = ThreadPoolExecutor(thread_name_prefix="hydra")

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: LiteLLM copies its configuration, plugins included, and there is one router."""
        return self

    def models(self) -> list[str]:
        return [model.id for model in self._live.now.catalog.models]

    async def decision(self, context: _Context, allow: Iterable[str]) -> Decision:
        """A decision among some of the catalog's models, noted in the context's signals.

        Raises:
            HydraError: The messages cannot be read, or no model can serve them.
        """
        query = replace(_query(context), allow=frozenset(allow))
        route = self._live.now.router.route
        loop = asyncio.get_running_loop()
        decision = await loop.run_in_executor(self._threads, route, query)
        context.signals["hydra"] = {"model": decision.model, "reason": decision.reason}
        return decision


class Routing:
    """For `router_settings.plugins`: leaves the chosen model alone among the candidates.

    Model groups that are not the catalog's pool pass as they are: every candidate must be a model
    of the catalog, and there must be more than one.
    """

    def __init__(self, choosing: Choosing) -> None:
        self._choosing = choosing

    async def run(self, context: _Context) -> _Context:
        """Choose.

        Raises:
            litellm.BadRequestError: No model can serve the request.
        """
        known = {one: _id_of(one, self._choosing.models()) for one in context.candidate_models}
        if len(set(known.values())) < 2 or None in known.values():
            return context
        allow = [model for model in known.values() if model is not None]
        try:
            decision = await self._choosing.decision(context, allow)
        except HydraError as error:
            raise _refusal(error) from error
        context.candidate_models = [one for one in known if known[one] == decision.model]
        return context


class Classifier:
    """For `classifier_plugin`: the chosen model's id is the tier's name."""

    def __init__(self, choosing: Choosing) -> None:
        self._choosing = choosing

    async def classify(self, context: _Context) -> str | None:
        """The tier, or None (LiteLLM's `fallback_tier` then) where no model can serve."""
        models = self._choosing.models()
        known = {_id_of(one, models) for one in context.candidate_models} - {None}
        try:
            allow = [str(one) for one in known] or models
            return (await self._choosing.decision(context, allow)).model
        except HydraError:
            return None


def __getattr__(name: str) -> Routing | Classifier:
    """`routing` and `classifier`, made when LiteLLM reads its configuration, not on import."""
    if name == "routing":
        return Routing(_choosing())
    if name == "classifier":
        return Classifier(_choosing())
    raise AttributeError(name)


@lru_cache(maxsize=1)
def _choosing() -> Choosing:
    """The process's own; HydraError where HYDRA_CATALOG is not set or names no valid catalog."""
    named = os.environ.get("HYDRA_CATALOG", "")
    if not named:
        raise HydraError("HYDRA_CATALOG is not set: give a catalog file, or store:NAME")
    bundle = os.environ.get("HYDRA_BUNDLE", "")
    predictor = Predictor(load_bundle(Path(bundle))) if bundle else default_predictor()
    sessions = MemorySessions()

    def router_of(catalog: Catalog) -> Router:
        require_bundle(catalog, predictor.bundle.fingerprint)
        return Router(catalog, predictor, sessions=sessions)

    live = LiveCatalog(source_of(named), router_of)
    live.start()
    return Choosing(live)


def _query(context: _Context) -> Query:
    key = context.metadata.get("session_id") or context.metadata.get("conversation_id")
    found = {"messages": context.structured_messages}
    return read_chat(found, key if isinstance(key, str) else None).query


def _id_of(candidate: str, models: Collection[str]) -> str | None:
    """The catalog's id of a candidate such as `gpt-5` or `openai/gpt-5`, None for none."""
    bare = candidate.partition("/")[2]
    return next((name for name in (candidate, bare) if name in models), None)


def _refusal(error: HydraError) -> Exception:
    """As LiteLLM tells a client: 400 for what the client asked, else the error itself."""
    if isinstance(error, RoutingError) and error.http_status >= 500:
        return error
    try:
        from litellm import BadRequestError
    except ImportError:
        return error
    refused: Exception = BadRequestError(str(error), model="auto", llm_provider="hydra")
    return refused
