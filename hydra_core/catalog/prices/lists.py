"""Reads price lists: LiteLLM's and its proxy's, OpenRouter's, Vercel's, models.dev's, one's own.

Their units differ; all are converted in decimal arithmetic, so that 2.75e-07 is 0.275 and nothing
else. A missing price, 0 and -1 are not prices: such entries are dropped and counted.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import PurePath
from typing import Any, Final

from hydra_core.base.errors import CatalogError
from hydra_core.base.json_values import TwiceError, unique_keys
from hydra_core.catalog.prices.price_table import price_table
from hydra_core.catalog.prices.quotes import (
    NO_PRICE,
    PriceList,
    PriceQuote,
    PriceSource,
    PriceTier,
    SkipEntry,
    count,
    day,
    flag,
    is_map,
    listed_pair,
    optional_price,
    word,
)

#: Endings of their files.
LIST_ENDINGS: Final = (".json", ".toml", ".csv", ".tsv", ".md")
#: The largest of these lists has 3 MB.
MAX_CHARS: Final = 30_000_000
_MAX_QUOTES: Final = 100_000
_PER_TOKEN: Final = Decimal(1_000_000)
_PER_MTOK: Final = Decimal(1)
_OPENROUTER: Final = ("prompt", "completion", "input_cache_read")
_VERCEL: Final = ("input", "output", "input_cache_read")
_MODELS_DEV: Final = ("input", "output", "cache_read")
_LITELLM: Final = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
}
_LITELLM_OUTPUT: Final = ("output_cost_per_token", "output_cost_per_reasoning_token")
_ABOVE: Final = re.compile(
    r"(?P<side>input_cost_per|output_cost_per|cache_read_input)_token(?:_cost)?"
    r"_above_(?P<number>\d{1,7})(?P<unit>[kKmM])_tokens"
)
_SIDES: Final = {
    "input_cost_per": "input", "output_cost_per": "output", "cache_read_input": "cached"
}  # fmt: skip
_MOST: Final = 8
#: More than any model of a public list asks: an entry beyond it is per thousand, or per million.
_MOST_LISTED: Final = Decimal(1_000)
_UNIT: Final = f"a price above ${_MOST_LISTED:,} per million tokens, which looks like a wrong unit"
_ELSEWHEN: Final = "other prices hold at some times or places, which are not read"
#: Where LiteLLM has the price of cached input of some DeepSeek models.
_HIT: Final = "input_cost_per_token_cache_hit"


def read_prices(text: str, filename: str, *, as_of: date) -> PriceList:
    """The quotes in a price list; whose it is, is told by its form.

    Args:
        text: JSON of one of the lists, one models.dev TOML file, or a CSV, TSV or Markdown
            table.
        filename: For messages; of a TOML file also the model's id and, in a path such as
            ``openai/models/gpt-5.toml``, its provider.

    Raises:
        CatalogError: It is too large, not readable, or none of the known lists.
    """
    if len(text) > MAX_CHARS:
        raise CatalogError.of(filename, f"is larger than {MAX_CHARS / 1e6:g} MB")
    lowered = filename.lower()
    if lowered.endswith(".toml"):
        source, found = PriceSource.MODELS_DEV, _toml(text, filename, as_of)
    elif lowered.endswith((".csv", ".tsv", ".md")):
        source, found = PriceSource.TABLE, price_table(text, filename, as_of)
    else:
        data = _json(text, filename)
        source, entries = _recognised(data, filename)
        found = entries(data, as_of)
    quotes: list[PriceQuote] = []
    free: list[PriceQuote] = []
    dropped: dict[str, list[str]] = {}
    for number, (name, read) in enumerate(found):
        if number >= _MAX_QUOTES:
            raise CatalogError.of(filename, f"has more than {_MAX_QUOTES:,} models")
        try:
            quote = read()
        except SkipEntry as reason:
            dropped.setdefault(str(reason), []).append(name)
            continue
        (quotes if quote.input_usd_per_mtok else free).append(quote)
        if not quote.input_usd_per_mtok:
            dropped.setdefault(NO_PRICE, []).append(name)
    return PriceList(source, tuple(quotes), dropped, tuple(free))


_Entries = Iterator[tuple[str, Callable[[], PriceQuote]]]


def _recognised(
    data: Any,  # noqa: ANN401
    filename: str,
) -> tuple[PriceSource, Callable[[Any, date], _Entries]]:
    listed = data.get("data") if is_map(data) else None
    rows = [one for one in listed if is_map(one)] if isinstance(listed, list) else []
    if any("prompt" in row["pricing"] for row in rows if is_map(row.get("pricing"))):
        return PriceSource.OPENROUTER, partial(_rows, _openrouter)
    if any(_is_vercels(row) for row in rows):
        return PriceSource.VERCEL, partial(_rows, _vercel)
    if any("model_info" in row for row in rows):
        return PriceSource.LITELLM, _proxy_entries
    values = [value for value in data.values() if isinstance(value, dict)] if is_map(data) else []
    if any(isinstance(value.get("models"), dict) for value in values):
        return PriceSource.MODELS_DEV, _models_dev_entries
    if any("litellm_provider" in value for value in values):
        return PriceSource.LITELLM, _litellm_entries
    raise CatalogError.of(
        filename,
        "is none of the price lists that are read here",
        "give LiteLLM's model_prices_and_context_window.json, the answer of its proxy's "
        "/model/info, of OpenRouter's /api/v1/models or of Vercel's AI Gateway /v1/models, "
        "models.dev's api.json or a model's TOML file, or a table as .csv",
    )


def _litellm_entries(data: Mapping[str, Any], as_of: date) -> _Entries:
    for name, entry in data.items():
        if name not in ("sample_spec", "fallback_generalizations") and is_map(entry):
            base = data.get(word(entry.get("alias_of")))
            entry = {**base, **entry} if is_map(base) else entry
            yield name, partial(_litellm, name, entry, as_of)


def _proxy_entries(data: Mapping[str, Any], as_of: date) -> _Entries:
    """The models of a LiteLLM proxy, by the names it serves them under."""
    for row in data["data"]:
        info = row.get("model_info") if is_map(row) else None
        if is_map(info):
            params = row.get("litellm_params")
            known = {key: value for key, value in info.items() if value is not None}
            name = word(row.get("model_name"))
            entry = {**params, **known} if is_map(params) else known
            yield name, partial(_litellm, name, entry, as_of)


def _litellm(name: str, entry: Mapping[str, Any], as_of: date) -> PriceQuote:
    if not name:
        raise SkipEntry("no id or no prices")
    if entry.get("mode") not in ("chat", "completion", "responses", None):
        raise SkipEntry("not a chat model")
    entry = {_LITELLM["cached"]: entry.get(_HIT), **_base_prices(entry)}
    gone = day(entry.get("deprecation_date"))
    # where the answer's limit is stated, `max_tokens` is an old name of that
    window, answer = count(entry.get("max_input_tokens")), count(entry.get("max_output_tokens"))
    return PriceQuote(
        source=PriceSource.LITELLM,
        id=name,
        provider=word(entry.get("litellm_provider")),
        **_prices(map(entry.get, _LITELLM.values()), _PER_TOKEN),
        context_window=window if window or answer else count(entry.get("max_tokens")),
        vision=flag(entry.get("supports_vision")),
        tools=flag(entry.get("supports_function_calling")),
        deprecated=gone is not None,
        retired_on=gone,
        as_of=as_of,
        remarks=(
            *_per_request(entry.get("input_cost_per_request")),
            *((_ELSEWHEN,) if entry.get("off_peak_pricing") else ()),
            *_reasoning(map(entry.get, _LITELLM_OUTPUT), _PER_TOKEN),
        ),
        tiers=_litellm_tiers(entry),
    )


def _per_request(price: Any) -> tuple[str, ...]:  # noqa: ANN401
    extra = optional_price(price, _PER_MTOK)
    return () if extra is None else (f"plus {extra:f} USD per request",)


def _reasoning(prices: Iterable[Any], factor: Decimal) -> tuple[str, ...]:
    """What is to be said of an entry by its prices of output and of reasoning, if they differ."""
    written, thought = (optional_price(price, factor) for price in prices)
    if thought in (None, written):
        return ()
    return (f"tokens of reasoning cost {thought:f} USD/Mtok, here as much as other output",)


def _prices(stated: Iterable[Any], factor: Decimal) -> dict[str, Any]:
    """Prices in, out and of cached input, times `factor`; a SkipEntry where one is needed."""
    read, written, cached = stated
    inward, outward = listed_pair(read, written, factor)
    if max(inward, outward) > _MOST_LISTED:
        raise SkipEntry(_UNIT)
    return {
        "input_usd_per_mtok": inward,
        "output_usd_per_mtok": outward,
        "cached_input_usd_per_mtok": optional_price(cached, factor),
    }


def _rows(
    read: Callable[[Mapping[str, Any], date], PriceQuote], data: Mapping[str, Any], as_of: date
) -> _Entries:
    """The entries of a gateway's list of models."""
    for entry in data["data"]:
        if is_map(entry):
            yield word(entry.get("id")), partial(read, entry, as_of)


def _offer(entry: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
    """A gateway's id of a model, the provider that the id begins with, and the prices."""
    name, pricing = word(entry.get("id")), entry.get("pricing")
    if not name or not is_map(pricing):
        raise SkipEntry("no id or no prices")
    return name, name.split("/", 1)[0] if "/" in name else "", pricing


def _openrouter(entry: Mapping[str, Any], as_of: date) -> PriceQuote:
    name, provider, pricing = _offer(entry)
    architecture = entry.get("architecture")
    inputs = architecture.get("input_modalities") if is_map(architecture) else None
    accepted = entry.get("supported_parameters")
    gone = day(entry.get("expiration_date"))
    return PriceQuote(
        source=PriceSource.OPENROUTER,
        id=name,
        provider=provider,
        **_prices(map(pricing.get, _OPENROUTER), _PER_TOKEN),
        context_window=count(entry.get("context_length")),
        vision="image" in inputs if isinstance(inputs, list) else None,
        tools="tools" in accepted if isinstance(accepted, list) else None,
        deprecated=gone is not None,
        retired_on=gone,
        as_of=as_of,
        remarks=_openrouter_remarks(pricing),
        tiers=_openrouter_tiers(pricing),
    )


def _openrouter_remarks(pricing: Mapping[str, Any]) -> tuple[str, ...]:
    other = len(_overrides(pricing)) > len(_by_length(pricing))
    return (
        *_per_request(pricing.get("request")),
        *((_ELSEWHEN,) if other else ()),
        *_reasoning(map(pricing.get, ("completion", "internal_reasoning")), _PER_TOKEN),
    )


def _overrides(pricing: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The prices of OpenRouter that hold under a condition."""
    listed = pricing.get("overrides")
    return [one for one in listed if is_map(one)] if isinstance(listed, list) else []


def _by_length(pricing: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those of them that hold by the length of a request alone."""
    return [
        one
        for one in _overrides(pricing)
        if count(one.get("min_prompt_tokens")) and not any(key.startswith("utc_") for key in one)
    ]


def _openrouter_tiers(pricing: Mapping[str, Any]) -> tuple[PriceTier, ...]:
    """The prices of long requests; one that is not restated stays what it is below."""
    above = {int(one["min_prompt_tokens"]): one for one in _by_length(pricing)}
    return tuple(
        PriceTier(
            start,
            *(optional_price(one.get(side, pricing.get(side)), _PER_TOKEN) for side in _OPENROUTER),
        )
        for start, one in sorted(above.items())[:_MOST]
    )


def _is_vercels(row: Mapping[str, Any]) -> bool:
    """Whether it is a language model with prices as Vercel writes them; others' are per million."""
    pricing = row.get("pricing")
    if not is_map(pricing) or row.get("type") != "language":
        return False
    return isinstance(pricing.get("input"), str) or isinstance(pricing.get("input_tiers"), list)


def _vercel(entry: Mapping[str, Any], as_of: date) -> PriceQuote:
    if entry.get("type") != "language":
        raise SkipEntry("not a chat model")
    (name, provider, pricing), tags = _offer(entry), entry.get("tags")
    varies = pricing.get("varies_by_provider") is True
    steps = _vercel_steps(pricing)
    return PriceQuote(
        source=PriceSource.VERCEL,
        id=name,
        provider=provider,
        **_prices(steps.pop(0), _PER_TOKEN),
        context_window=count(entry.get("context_window")),
        vision="vision" in tags if isinstance(tags, list) else None,
        tools="tool-use" in tags if isinstance(tags, list) else None,
        deprecated=False,
        retired_on=None,
        as_of=as_of,
        remarks=("the prices differ by provider",) if varies else (),
        tiers=tuple(
            PriceTier(above, *(optional_price(price, _PER_TOKEN) for price in prices))
            for above, prices in sorted(steps.items())[:_MOST]
        ),
    )


def _vercel_steps(pricing: Mapping[str, Any]) -> dict[int, list[Any]]:
    """Input tokens above which prices hold, 0 for the usual ones -> in, out and of cached input.

    A price that has no step there stays what it is below it.
    """
    named: dict[int, dict[str, Any]] = {0: {}}
    for side in _VERCEL:
        listed = pricing.get(f"{side}_tiers")
        for one in listed[:_MOST] if isinstance(listed, list) else []:
            if is_map(one):
                named.setdefault(max((count(one.get("min")) or 1) - 1, 0), {})[side] = one.get(
                    "cost"
                )
        named[0][side] = pricing.get(side, named[0].get(side))
    prices: dict[str, Any] = {}
    steps = {}
    for above, stated in sorted(named.items()):
        prices |= stated
        steps[above] = [prices[side] for side in _VERCEL]
    return steps


def _models_dev_entries(data: Mapping[str, Any], as_of: date) -> _Entries:
    for provider, entry in data.items():
        models = entry.get("models") if is_map(entry) else None
        for name, model in models.items() if is_map(models) else ():
            label = f"{provider}/{name}"
            yield label, partial(_models_dev, provider, name, model, as_of)


def _models_dev(provider: str, name: str, entry: Any, as_of: date) -> PriceQuote:  # noqa: ANN401
    cost = entry.get("cost") if is_map(entry) else None
    if not is_map(cost):
        raise SkipEntry("no price")
    limit, modalities = entry.get("limit"), entry.get("modalities")
    inputs = modalities.get("input") if is_map(modalities) else None
    return PriceQuote(
        source=PriceSource.MODELS_DEV,
        id=name,
        provider=provider,
        **_prices(map(cost.get, _MODELS_DEV), _PER_MTOK),
        context_window=count(limit.get("context")) if is_map(limit) else None,
        vision="image" in inputs if isinstance(inputs, list) else None,
        tools=flag(entry.get("tool_call")),
        deprecated=entry.get("status") == "deprecated",
        retired_on=None,
        as_of=as_of,
        remarks=_reasoning(map(cost.get, ("output", "reasoning")), _PER_MTOK),
        tiers=_models_dev_tiers(cost),
    )


def _toml(text: str, filename: str, as_of: date) -> _Entries:
    try:
        data = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ArithmeticError, ValueError, RecursionError) as error:
        raise CatalogError.of(filename, f"is not valid TOML: {error}") from error
    path = PurePath(filename.replace("\\", "/"))
    known = "models" in path.parts[1:]
    provider = path.parts[path.parts.index("models") - 1] if known else ""
    yield path.stem, partial(_models_dev, provider, path.stem, data, as_of)


def _json(text: str, filename: str) -> Any:  # noqa: ANN401
    """Numbers as Decimal: a float would already have rounded them."""
    try:
        return json.loads(
            text.removeprefix("\ufeff"),
            parse_float=Decimal,
            parse_int=Decimal,
            parse_constant=lambda word: None,  # NaN and Infinity are not prices
            object_pairs_hook=unique_keys,
        )
    except TwiceError as error:
        raise CatalogError.of(filename, str(error), "keep the one that holds") from error
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise CatalogError.of(filename, f"is not valid JSON: {error}") from error


def _litellm_tiers(entry: Mapping[str, Any]) -> tuple[PriceTier, ...]:
    """The tiers of a LiteLLM entry: keys `..._above_200k_tokens`, or a list `tiered_pricing`.

    A price without such a key stays what it is below it, as in LiteLLM's own costs.
    """
    sides: dict[int, dict[str, Any]] = {}
    for key, value in entry.items():
        match = _ABOVE.fullmatch(key)
        if match is not None:
            side = _SIDES[match["side"]]
            above = int(match["number"]) * (1_000_000 if match["unit"] in "mM" else 1_000)
            sides.setdefault(above, {})[side] = value
    for tier in _ranges(entry)[1:]:
        sides[tier["from"]] = {side: tier[side] for side in _LITELLM}
    base = {side: entry.get(key) for side, key in _LITELLM.items()}
    return tuple(
        PriceTier(above, *(optional_price(prices.get(s, base[s]), _PER_TOKEN) for s in _LITELLM))
        for above, prices in sorted(sides.items())[:_MOST]
    )


def _base_prices(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """A LiteLLM entry with the prices of its lowest tier, where it has tiers alone."""
    ranges = _ranges(entry)
    if not ranges or "input_cost_per_token" in entry:
        return entry
    return {**entry, **{key: ranges[0][side] for side, key in _LITELLM.items()}}


def _ranges(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The ranges of `tiered_pricing`, lowest first."""
    listed = entry.get("tiered_pricing")
    ranges = []
    for tier in listed[:_MOST] if isinstance(listed, list) else []:
        bounds = tier.get("range") if is_map(tier) else None
        if is_map(tier) and isinstance(bounds, list) and bounds:
            ranges.append(
                {"from": count(bounds[0]) or 0}
                | {side: tier.get(key) for side, key in _LITELLM.items()}
            )
    return sorted(ranges, key=lambda tier: int(tier["from"]))


def _models_dev_tiers(cost: Mapping[str, Any]) -> tuple[PriceTier, ...]:
    """The tiers of a models.dev entry: its list, else the older object for above 200,000 tokens.

    Where it has both, the object repeats the first tier, whatever length that begins at. A price
    that a tier does not name stays what it is below it.
    """
    listed = cost.get("tiers")
    sides: dict[int, Mapping[str, Any]] = {}
    for one in listed[:_MOST] if isinstance(listed, list) else []:
        tier = one.get("tier") if is_map(one) else None
        context = is_map(tier) and tier.get("type", "context") == "context"
        if is_map(tier) and context and (above := count(tier.get("size"))):
            sides[above] = one
    older = cost.get("context_over_200k")
    if not sides and is_map(older):
        sides[200_000] = older
    return tuple(
        PriceTier(above, *(optional_price(one.get(s, cost.get(s)), _PER_MTOK) for s in _MODELS_DEV))
        for above, one in sorted(sides.items())
    )
