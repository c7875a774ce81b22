"""LiteLLM proxy configuration: the models with exact prices per token and their capabilities.

LiteLLM then serves, meters and bills the models; choosing between them by requirement stays with
HyDRA.
"""

from __future__ import annotations

from hydra_core.base.types import Catalog, ModelSpec
from hydra_core.catalog.editing.render import Value
from hydra_core.export.foreign import (
    Export,
    decision_rules,
    exported_models,
    left_out,
    per_token,
    profiles,
    written,
)


def litellm_config(catalog: Catalog) -> Export:
    """A proxy `config.yaml` with one entry in `model_list` per routable model, catalog order."""
    vectors = profiles(catalog)
    entries: list[Value] = [
        _entry(model, {**vectors[model.id]}) for model in exported_models(catalog)
    ]
    notes = [
        *decision_rules(
            catalog,
            "routing by message: LiteLLM ignores the capabilities in model_info",
        ),
        f"stickiness ({catalog.policy.sticky.mode.value}), the health veto and the cost order",
        "the evidence the capabilities come from, price sources and dates",
        "API keys: LiteLLM reads each provider's usual environment variable",
        "whether LiteLLM uses the catalog's provider names; check litellm_params.model",
        *left_out(catalog),
    ]
    return written("LiteLLM proxy config", catalog, {"model_list": entries}, notes)


def _entry(model: ModelSpec, capabilities: dict[str, Value]) -> Value:
    info: dict[str, Value] = {
        "mode": "chat",
        "max_input_tokens": model.context_window,
        "supports_vision": model.vision,
        "supports_function_calling": model.tools,
        "input_cost_per_token": per_token(model.input_usd_per_mtok),
        "output_cost_per_token": per_token(model.output_usd_per_mtok),
    }
    if model.cached_input_usd_per_mtok is not None:
        info["cache_read_input_token_cost"] = per_token(model.cached_input_usd_per_mtok)
    info["hydra_capabilities"] = capabilities
    return {
        "model_name": model.id,
        "litellm_params": {"model": _provider_model(model)},
        "model_info": info,
    }


def _provider_model(model: ModelSpec) -> str:
    """``provider/model``, LiteLLM's way of naming who serves it."""
    prefix = f"{model.provider}/"
    return model.id if model.id.startswith(prefix) else prefix + model.id
