"""What changed between two catalogs, in an operator's words."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from enum import StrEnum
from typing import Final

from hydra_core.base.fitted_blocks import PerDimension
from hydra_core.base.spelling import short_number
from hydra_core.base.types import Benchmark, Catalog, ModelSpec, Team


class ChangeKind(StrEnum):
    """What happened to a thing between the old and the new catalog."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        path: Keys and ids that lead to it, such as ("models", "gpt-5.4", "input_usd_per_mtok").
        before, after: Its value then and now as shown, `after` with its unit; both None where a
            whole model or benchmark came or went.
    """

    kind: ChangeKind
    path: tuple[str, ...]
    subject: str
    before: str | None = None
    after: str | None = None

    def __str__(self) -> str:
        """The difference as a sentence without a full stop."""
        if self.after is None:
            return f"{self.subject} {self.kind.value}"
        return f"{self.subject} {self.before} -> {self.after}"


_Leaf = str | float | int | bool | date | frozenset[str] | None
_UNITS = {
    "input_usd_per_mtok": ("input price", "USD/Mtok"),
    "output_usd_per_mtok": ("output price", "USD/Mtok"),
    "cached_input_usd_per_mtok": ("cached input price", "USD/Mtok"),
    "context_window": ("context window", "tokens"),
    "long_prompts": ("price of long requests", ""),
    "price_source": ("price source", ""),
    "price_date": ("price read", ""),
    "retire_on": ("retires on", ""),
    "ttl_s": ("ttl", "s"),
    "value_usd": ("value", "USD per resolved query"),
    "budget_usd": ("budget", "USD per conversation"),
}
_NESTED = ("scores", "overrides")


def semantic_diff(old: Catalog, new: Catalog) -> tuple[Change, ...]:
    """All differences in what it does; comments, spelling and key order make none.

    Nor does the record of where the policy was chosen: it says how a value came about.

    The order of the models counts: it breaks ties between equally dear models.
    """
    return (*_settings(old, new), *_benchmarks(old, new), *_models(old, new))


def _settings(old: Catalog, new: Catalog) -> Iterator[Change]:
    for subject, path, facts in _PARTS:
        yield from _values(subject, path, facts(old), facts(new))
    yield from _success_profiles(old, new)


def team_text(team: Team) -> str:
    """What holds for a team, in a few words."""
    budget = team.budget
    parts = [
        "" if team.models is None else ", ".join(sorted(team.models)),
        "" if team.tau is None else f"tau {short_number(team.tau, 6)}",
        "" if team.value_usd is None else f"V ${short_number(team.value_usd, 6)}",
        ""
        if budget is None
        else f"${short_number(budget.usd, 10)} a {budget.per.value}, falls from "
        f"{100 * budget.falls_from:g} %, cheapest from {100 * budget.cheapest_from:g} %, "
        f"least {short_number(budget.least, 6)}, then {budget.when_spent.value}",
    ]
    return "; ".join(filter(None, parts)) or "no limits"


def _general(catalog: Catalog) -> dict[str, _Leaf]:
    return {
        "name": catalog.name,
        "notes": catalog.notes,
        "dimensions": ", ".join(catalog.dimensions),
        "predictor": catalog.predictor,
        "predictor fingerprint": catalog.predictor_fingerprint,
    }


def _bands(catalog: Catalog) -> dict[str, _Leaf]:
    pairs = zip(catalog.dimensions, catalog.bands, strict=True)
    return {name: f"[{_shown(band.lo)}, {_shown(band.hi)}]" for name, band in pairs}


def _policy(catalog: Catalog) -> dict[str, _Leaf]:
    policy = catalog.policy
    return {
        "tau": policy.tau,
        "cost_basis": policy.cost_basis.value,
        "price_ratio": policy.price_ratio,
        "health_floor": policy.health_floor,
        "sticky mode": policy.sticky.mode.value,
        "sticky threshold": policy.sticky.threshold,
        "ttl_s": policy.sticky.ttl_s,
        "sticky margin": policy.sticky.margin,
        "rule": policy.rule.value,
        "value_usd": policy.value_usd,
        "success from": None if policy.success_from is None else policy.success_from.words,
        "require": policy.require,
        "second_usd": policy.second_usd,
        "promise": None if policy.promise is None else policy.promise.claim,
    }


def _success_profiles(old: Catalog, new: Catalog) -> Iterator[Change]:
    before, after = (_success_facts(one) for one in (old, new))
    yield from _values("success profiles", ("success_profiles",), before, after)
    models = [
        {} if one.success_profiles is None else one.success_profiles.models for one in (old, new)
    ]
    yield from _presence("success profile of", "success_profiles", *models)
    for name in [name for name in models[1] if name in models[0]]:
        rows = (_success_model(one, name) for one in (old, new))
        yield from _values(f"{name} success:", ("success_profiles", "models", name), *rows)


def _success_facts(catalog: Catalog) -> dict[str, _Leaf]:
    block = catalog.success_profiles
    if block is None:
        return {}
    shared = _curves(catalog, block.cost_adds)
    return {
        "fitted to": block.evalset,
        "digest": block.digest,
        "queries": block.queries,
        "knots": "; ".join(_list(points) for points in block.knots),
        "cost factor intercept": block.cost_intercept,
        **{f"cost factor {name}": text for name, text in shared.items()},
    }


def _success_model(catalog: Catalog, name: str) -> dict[str, _Leaf]:
    assert catalog.success_profiles is not None
    one = catalog.success_profiles.models[name]
    read, written = (None, None) if one.tokens is None else one.tokens
    costs: dict[str, _Leaf] = {
        "mean input tokens": read, "mean output tokens": written, "mean cost, USD": one.cost_usd,
    }  # fmt: skip
    known = {name: value for name, value in costs.items() if value is not None}
    return {"intercept": one.intercept, **_curves(catalog, one.adds), **known}


def _curves(catalog: Catalog, curves: PerDimension) -> dict[str, _Leaf]:
    return {name: _list(points) for name, points in zip(catalog.dimensions, curves, strict=False)}


def _list(values: Iterable[float]) -> str:
    return f"[{', '.join(f'{value:g}' for value in values)}]"


#: Subject, path and facts of what a catalog says once.
_PARTS: Final[tuple[tuple[str, tuple[str, ...], Callable[[Catalog], Mapping[str, _Leaf]]], ...]] = (
    ("", (), _general),
    ("band of", ("bands",), _bands),
    ("policy", ("policy",), _policy),
    (
        "weight of",
        ("policy", "weights"),
        lambda c: dict(zip(c.dimensions, c.policy.weights, strict=True)),
    ),
    ("score cap of", ("policy", "defences", "score_caps"), lambda c: c.policy.defences.score_caps),
    ("policy", ("policy", "defences"), lambda c: {"budget_usd": c.policy.defences.budget_usd}),
    (
        "team",
        ("policy", "teams"),
        lambda c: {name: team_text(team) for name, team in c.policy.teams.items()},
    ),
    ("stall", ("policy", "stall"), lambda c: asdict(c.policy.stall) if c.policy.stall else {}),
    ("outcome model", ("outcome_model",), lambda c: _of(c.outcome_model, "path", "sha256")),
    ("realised costs", ("realised_costs",), lambda c: _of(c.realised_costs, "evalset", "digest")),
    (
        "realised cost of",
        ("realised_costs", "usd_per_query"),
        lambda c: c.realised_costs.usd_per_query if c.realised_costs else {},
    ),
)


def _of(held: object, *names: str) -> dict[str, _Leaf]:
    """These fields of what a catalog may hold."""
    return {} if held is None else {name: getattr(held, name) for name in names}


def _benchmarks(old: Catalog, new: Catalog) -> Iterator[Change]:
    before = {benchmark.id: benchmark for benchmark in old.benchmarks}
    after = {benchmark.id: benchmark for benchmark in new.benchmarks}
    yield from _presence("benchmark", "evidence", before, after)
    for name in [name for name in after if name in before]:
        rows = (_benchmark(old, before[name]), _benchmark(new, after[name]))
        yield from _values(f"benchmark {name}", ("evidence", name), *rows)


def _benchmark(catalog: Catalog, benchmark: Benchmark) -> dict[str, _Leaf]:
    weights = zip(catalog.dimensions, benchmark.weights, strict=True)
    row: dict[str, _Leaf] = {f"weight on {name}": weight for name, weight in weights}
    return {"importance": benchmark.importance, **row}


def _models(old: Catalog, new: Catalog) -> Iterator[Change]:
    before = {model.id: model for model in old.models}
    after = {model.id: model for model in new.models}
    yield from _presence("model", "models", before, after)
    for name in [model.id for model in new.models if model.id in before]:
        path = ("models", name)
        yield from _values(name, path, _model(before[name]), _model(after[name]))
        scores = (before[name].scores, after[name].scores)
        yield from _values(f"{name} score on", (*path, "scores"), *scores)
        by_hand = (before[name].overrides, after[name].overrides)
        yield from _values(f"{name} capability by hand:", (*path, "capabilities"), *by_hand)
    kept = ([m for m in before if m in after], [m for m in after if m in before])
    if kept[0] != kept[1]:
        yield Change(ChangeKind.CHANGED, ("models",), "model order", *map(", ".join, kept))


def _model(model: ModelSpec) -> dict[str, _Leaf]:
    names = [spec.name for spec in fields(ModelSpec) if spec.name not in (*_NESTED, "id")]
    tiers = "; ".join(map(str, model.long_prompts)) or None
    return {name: getattr(model, name) for name in names} | {"long_prompts": tiers}


def _presence(
    noun: str, section: str, before: Mapping[str, object], after: Mapping[str, object]
) -> Iterator[Change]:
    for name in before:
        if name not in after:
            yield Change(ChangeKind.REMOVED, (section, name), f"{noun} {name}")
    for name in after:
        if name not in before:
            yield Change(ChangeKind.ADDED, (section, name), f"{noun} {name}")


def _values(
    subject: str, path: tuple[str, ...], old: Mapping[str, _Leaf], new: Mapping[str, _Leaf]
) -> Iterator[Change]:
    """Differences of single values, in the new one's order, those gone last."""
    for key in [*new, *(key for key in old if key not in new)]:
        before, after = old.get(key), new.get(key)
        if before == after and (key in old) == (key in new):
            continue
        label, unit = _UNITS.get(key, (key.replace("_", " ") if not path else key, ""))
        kind = ChangeKind.CHANGED
        if before is None:
            kind = ChangeKind.ADDED
        elif after is None:
            kind = ChangeKind.REMOVED
        named = f"{subject} {label}".strip()
        units = ("", unit) if after is not None else (unit, "")  # at the last number
        texts = (f"{_shown(v)} {u}".strip() for v, u in zip((before, after), units, strict=True))
        yield Change(kind, (*path, key), named, *texts)


def _shown(value: _Leaf) -> str:
    """A value as a sentence shows it; prices and rates keep at least two decimals."""
    match value:
        case frozenset():
            return ", ".join(sorted(value)) or "(none)"
        case None | "":
            return "(none)"
        case bool():
            return "yes" if value else "no"
        case float():
            text = f"{value:.10f}".rstrip("0")
            whole, _, decimals = text.partition(".")
            return f"{whole}.{decimals:0<2}"
        case int():
            return f"{value:,}"
        case date():
            return value.isoformat()
    return value if len(value) <= 80 else f"{value[:77]}..."
