"""vLLM Semantic Router configuration (v0.3): model cards, prices, and capabilities as evaluations.

That router chooses by signals and decisions, not by shortfall: it gets the pool with a catch-all
decision to one model, valid and safe before somebody writes decisions of their own.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from hydra_core.base.types import Catalog, ModelSpec
from hydra_core.catalog.editing.document import Value
from hydra_core.catalog.prices.suggestions import exact
from hydra_core.catalog.profiles import blended_price
from hydra_core.export.foreign import (
    Export,
    decision_rules,
    exported_models,
    left_out,
    profiles,
    teams,
    written,
)

_BENCHMARK: Final = "hydra/capability@1"


def vllm_semantic_router_config(catalog: Catalog) -> Export:
    """A `config.yaml` of schema v0.3; the most expensive model is the default, the safe one."""
    models = exported_models(catalog)
    default = max(models, key=lambda model: blended_price(model, catalog.policy.price_ratio))
    vectors = profiles(catalog)
    data: dict[str, Value] = {
        "version": "v0.3",
        "listeners": [],
        "providers": {
            "defaults": {"model": default.id},
            "models": [_provider(model) for model in models],
        },
        "evaluation": {"records": [_record(model, vectors[model.id]) for model in models]},
        "routing": {
            "modelCards": [_card(model) for model in models],
            "decisions": [_everything_to(default)],
        },
    }
    return written("vLLM Semantic Router config", catalog, data, _not_expressed(catalog, default))


def _not_expressed(catalog: Catalog, default: ModelSpec) -> list[str]:
    models, require = exported_models(catalog), sorted(catalog.policy.require)
    long_prompts = ", ".join(model.id for model in models if model.long_prompts)
    gates = ", ".join(model.id for model in models if model.tags or model.lacks)
    more = {
        "prices of long requests: ": long_prompts,
        "what models lack, and their tags: ": gates,
        "tags that the policy requires: ": ", ".join(require),
    }
    return [
        *decision_rules(
            catalog,
            f"the one decision below sends everything to {default.id}, the most expensive model",
        ),
        f"stickiness ({catalog.policy.sticky.mode.value}), the health veto and the cost order",
        "the evidence the capabilities come from; the capabilities themselves are evaluation "
        f"records of {_BENCHMARK}",
        "price sources and dates",
        "where the models are served: add backend_refs and listeners",
        *(f"{what}{which}" for what, which in more.items() if which),
        *teams(catalog),
        *left_out(catalog),
    ]


def _provider(model: ModelSpec) -> Value:
    prices: dict[str, Value] = {
        "currency": "USD",
        "prompt_per_1m": exact(model.input_usd_per_mtok),
        "completion_per_1m": exact(model.output_usd_per_mtok),
    }
    if model.cached_input_usd_per_mtok is not None:
        prices["cached_input_per_1m"] = exact(model.cached_input_usd_per_mtok)
    return {"name": model.id, "provider_model_id": model.id, "pricing": prices}


def _card(model: ModelSpec) -> Value:
    inputs: list[Value] = ["text", "image"] if model.vision else ["text"]
    return {
        "name": model.id,
        "context_window_size": model.context_window,
        "capabilities": ["tools"] if model.tools else [],
        "modalities": {"input": inputs, "output": ["text"]},
    }


def _record(model: ModelSpec, capabilities: Mapping[str, Decimal]) -> Value:
    """Metric names there are small ASCII words."""
    metrics: dict[str, Value] = {
        "".join(char if char.isascii() and char.isalnum() else "_" for char in name.lower()): value
        for name, value in capabilities.items()
    }
    return {"model": model.id, "benchmark": _BENCHMARK, "metrics": metrics, "source": "HyDRA"}


def _everything_to(model: ModelSpec) -> Value:
    return {
        "name": "everything",
        "description": "Catch-all until decisions of your own are written",
        "priority": 100,
        "rules": {"operator": "AND", "conditions": []},
        "modelRefs": [{"model": model.id, "use_reasoning": False}],
    }
