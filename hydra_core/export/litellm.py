"""LiteLLM proxy configuration with HyDRA's plugin: one group of models that HyDRA chooses from.

LiteLLM then serves, meters and bills the models; the plugin reads the rule from a catalog.
"""

from collections.abc import Mapping
from typing import Final

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.list_price import ListPrice, LongPromptPrice
from hydra_core.base.types import Catalog, ModelSpec
from hydra_core.catalog.editing.document import Value
from hydra_core.export.foreign import (
    Export,
    decision_rules,
    exported_models,
    left_out,
    per_token,
    profiles,
    teams,
    written,
)

#: The name that callers ask for; the plugin narrows the group to one model.
GROUP: Final = "auto"
_PLUGIN: Final = "hydra_core.server.litellm_plugins.routing"
#: What catalogs say where nobody named a provider.
_UNKNOWN: Final = frozenset({"", "not stated", "unknown", "n/a", "none"})
#: LiteLLM's word for providers that are commonly called otherwise.
_WORDS: Final = {
    "google": "gemini", "aws": "bedrock", "amazon": "bedrock", "x.ai": "xai",
    "mistralai": "mistral", "together": "together_ai", "fireworks": "fireworks_ai",
}  # fmt: skip


def without_provider(catalog: Catalog) -> tuple[str, ...]:
    """Models whose provider the catalog does not know, catalog order."""
    return tuple(m.id for m in exported_models(catalog) if m.provider.strip().lower() in _UNKNOWN)


def litellm_config(catalog: Catalog, providers: Mapping[str, str] | None = None) -> Export:
    """A proxy `config.yaml`: every routable model in one group, and the plugin that chooses.

    Args:
        providers: Model id -> LiteLLM's name of its provider, where the catalog does not know it.

    Raises:
        CatalogError: The provider of a model is not known: LiteLLM could not call it.
    """
    given = {name: word.strip() for name, word in (providers or {}).items() if word.strip()}
    missing = [name for name in without_provider(catalog) if name not in given]
    if missing:
        message = "is not known, and LiteLLM calls a model by provider/name"
        remedy = "name it, such as openai, anthropic or gemini"
        problems = [Problem(f"models '{name}': provider", message, remedy) for name in missing]
        raise CatalogError(catalog.source or catalog.name, problems)
    vectors = profiles(catalog)
    entries: list[Value] = [
        _entry(model, given.get(model.id, model.provider), {**vectors[model.id]})
        for model in exported_models(catalog)
    ]
    data: dict[str, Value] = {"model_list": entries, "router_settings": {"plugins": [_PLUGIN]}}
    instead = "HyDRA's plugin applies it, from the catalog that HYDRA_CATALOG names"
    notes = [
        *decision_rules(catalog, instead),
        "the health veto: LiteLLM's own cool-downs apply",
        "the evidence the capabilities come from, price sources and dates",
        "API keys: LiteLLM reads each provider's usual environment variable",
        *teams(catalog),
        *left_out(catalog),
    ]
    return written("LiteLLM proxy config", catalog, data, notes)


def _entry(model: ModelSpec, provider: str, capabilities: dict[str, Value]) -> Value:
    info: dict[str, Value] = {
        "mode": "chat",
        "max_input_tokens": model.context_window,
        "supports_vision": model.vision,
        "supports_function_calling": model.tools,
    }
    prices: dict[str, ListPrice | LongPromptPrice] = {"": model.price}
    for tier in model.long_prompts:
        prices[f"_above_{tier.above_tokens // 1000}k_tokens"] = tier
    for suffix, price in prices.items():
        info[f"input_cost_per_token{suffix}"] = per_token(price.input_usd_per_mtok)
        info[f"output_cost_per_token{suffix}"] = per_token(price.output_usd_per_mtok)
        if price.cached_input_usd_per_mtok is not None:
            cached = per_token(price.cached_input_usd_per_mtok)
            info[f"cache_read_input_token_cost{suffix}"] = cached
    info["hydra_capabilities"] = capabilities
    return {
        "model_name": GROUP,
        "litellm_params": {"model": _provider_model(model.id, provider)},
        "model_info": info,
    }


def _provider_model(name: str, provider: str) -> str:
    """``provider/model``, LiteLLM's way of naming who serves it."""
    word = provider.strip().lower().replace(" ", "_")
    prefix = f"{_WORDS.get(word, word)}/"
    return name if name.startswith(prefix) else prefix + name
