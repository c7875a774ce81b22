"""What every importer makes: an eval set in memory with a report; how it is joined and kept."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError
from hydra_core.base.list_price import ListPrice
from hydra_core.base.spelling import counted, counted_that
from hydra_core.base.types import FloatArray
from hydra_core.evalsets.evalset import EvalSet, save_evalset
from hydra_core.evalsets.importers.given import PriceCard
from hydra_core.evalsets.importers.reading.bounded import stop_where_asked
from hydra_core.evalsets.rules import FLAGS
from hydra_core.evalsets.suspects import suspects

_EXAMPLES = 3
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something left out: why, how many, and the first few."""

    reason: str
    count: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.examples) else ""
        return f"{self.count} x {self.reason}" + (
            f" (e.g. {', '.join(self.examples)}{more})" if self.examples else ""
        )


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import kept and what it left out.

    Attributes:
        kept: Queries in the eval set.
        outcomes: Known outcomes (query and model).
        missing: Model -> (queries without an outcome, queries without a cost); only models
            with gaps.
        columns: Field -> column it was read from, for a table.
        unread: Columns of a table that were read as nothing.
    """

    kept: int
    outcomes: int
    models: tuple[str, ...]
    dropped: tuple[Dropped, ...] = ()
    warnings: tuple[str, ...] = ()
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"kept {counted(self.kept, 'query')}, {counted(self.outcomes, 'outcome')} of "
            f"{counted(len(self.models), 'model')}"
        ]
        if self.columns:
            lines.append("read " + ", ".join(f"{f} from {c!r}" for f, c in self.columns.items()))
        if self.unread:
            lines.append("not read: " + ", ".join(map(repr, self.unread)))
        lines += [f"dropped {entry}" for entry in self.dropped]
        lines += [f"missing for {gap}" for gap in self.gaps]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    @property
    def gaps(self) -> list[str]:
        """What each model lacks, in words; no costs where there are none at all, as warned of."""
        none = [m for m in self.models if self.missing.get(m, (0, 0))[1] == self.kept]
        costless = len(none) == len(self.models)
        return [
            f"{m}: {counted(q, 'outcome')}" + ("" if costless else f", {counted(c, 'cost')}")
            for m, (q, c) in self.missing.items()
            if q or not costless
        ]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        missing = {m: {"quality": q, "cost_usd": c} for m, (q, c) in self.missing.items()}
        return {**asdict(self), "missing": missing}


@dataclass(frozen=True, slots=True)
class About:
    """What an operator says about an eval set; `name` defaults to the folder's."""

    name: str = ""
    origin: str = ""
    licence: str = ""
    synthetic: bool = False
    cost_estimated: bool = False
    price_notes: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """An imported eval set that is not on disk yet; matrices are (n, m), NaN where missing.

    Attributes:
        cost_estimated: The importer computed costs from prices; no `About` can take that back.
        price_notes: How, unless the operator's own notes say so.
        prices: Model id -> list price that the costs were recorded or computed at, where known.
    """

    queries: pd.DataFrame
    models: tuple[str, ...]
    quality: FloatArray
    cost_usd: FloatArray
    report: ImportReport
    extras: Mapping[str, FloatArray] = field(default_factory=dict)
    cost_estimated: bool = False
    price_notes: str = ""
    prices: Mapping[str, ListPrice] = field(default_factory=dict)


def report_on(
    models: Sequence[str],
    quality: FloatArray,
    cost_usd: FloatArray,
    dropped: Sequence[Dropped] = (),
    warnings: Sequence[str] = (),
    queries: pd.DataFrame | None = None,
) -> ImportReport:
    """The report of a finished import; counts the gaps in the (n, m) matrices.

    Args:
        queries: The kept ones, which are looked through for those that look dependent.
    """
    suspected = [] if queries is None else dependence_warnings(queries)
    gaps = zip(models, np.isnan(quality).sum(axis=0), np.isnan(cost_usd).sum(axis=0), strict=True)
    return ImportReport(
        kept=len(quality),
        outcomes=int(np.isfinite(quality).sum()),
        models=tuple(models),
        dropped=tuple(entry for entry in dropped if entry.count),
        warnings=(*warnings, *suspected),
        missing={model: (int(q), int(c)) for model, q, c in gaps if q or c},
    )


def with_estimates(draft: Draft, count: int, card: PriceCard, tokens: str) -> Draft:
    """The draft, marked as one with so many costs computed from these prices.

    Args:
        tokens: Where the tokens of estimated costs come from, for the price notes.
    """
    if not count:
        return draft
    were = counted_that(count, "cost", "was", "were")
    warning = f"{were} estimated from prices, not billed"
    return replace(
        draft,
        cost_estimated=True,
        price_notes=card.notes(draft.models, tokens),
        prices={m: card.prices[m].price for m in draft.models if m in card.prices},
        report=replace(draft.report, warnings=(*draft.report.warnings, warning)),
    )


def dependence_warnings(queries: pd.DataFrame) -> list[str]:
    """What looks like duplicates, translations or attempts by ids and texts, with examples."""
    found = suspects(queries)
    if not found.groups:
        return []
    ids = queries["query_id"].astype(str).to_numpy()
    examples = "; ".join(", ".join(ids[rows[:_EXAMPLES]]) for rows in found.groups[:_EXAMPLES])
    return [
        f"{found} (e.g. {examples}). Intervals are too narrow unless they are declared as "
        "clusters: look for them on Eval sets or with the verb dependence; once the set is "
        "scored, also by meaning"
    ]


def write_draft(draft: Draft, out: Path, about: About, *, force: bool = False) -> EvalSet:
    """Write an imported eval set into a folder; `force` replaces the set that is there.

    Raises:
        EvalSetError: `out` is taken or cannot be written; nothing was changed.
    """
    return save_evalset(
        out,
        name=about.name or out.resolve().name,
        queries=draft.queries,
        models=draft.models,
        quality=draft.quality,
        cost_usd=draft.cost_usd,
        origin=about.origin,
        licence=about.licence,
        synthetic=about.synthetic,
        cost_estimated=about.cost_estimated or draft.cost_estimated,
        price_notes=about.price_notes or draft.price_notes,
        extras=draft.extras,
        prices=draft.prices,
        force=force,
    )


def language_of(text: str) -> str:
    """The language code of a text, guessed from its script and words."""
    from hydra_core.predictor.languages import detect  # only imports without a language need it

    stop_where_asked()
    return detect(text)


def join_sets(sets: Sequence[EvalSet]) -> Draft:
    """Join by query id. Where two sets have the same outcome, the first named counts.

    Raises:
        EvalSetError: One set only, or an id with another text in another set.
    """
    if len(sets) < 2:
        raise EvalSetError.of("join", "one set is nothing to join", "name two or more")
    _check_texts(sets)
    queries = _queries(sets)
    models = tuple(dict.fromkeys(model for one in sets for model in one.models))
    shape = (len(queries), len(models))
    place = pd.Index(queries["query_id"])
    extras = list(dict.fromkeys(name for one in sets for name in one.extras))
    whole = {name: np.full(shape, np.nan) for name in ("quality", "cost_usd", *extras)}
    kept_before = 0
    for one in sets:
        at = np.ix_(place.get_indexer(one.query_ids), [models.index(m) for m in one.models])
        known = np.isfinite(whole["quality"][at])
        kept_before += int((known & np.isfinite(one.quality)).sum())
        for name, into in whole.items():
            own = {"quality": one.quality, "cost_usd": one.cost_usd}.get(name, one.extras.get(name))
            if own is not None:
                into[at] = np.where(known | ~np.isfinite(own), into[at], own)
    quality, cost_usd = whole.pop("quality"), whole.pop("cost_usd")
    warnings = []
    if kept_before:
        are = counted_that(kept_before, "outcome", "is", "are")
        warnings.append(f"{are} in several sets; the first named counts")
    return Draft(
        queries=queries,
        models=models,
        quality=quality,
        cost_usd=cost_usd,
        report=report_on(models, quality, cost_usd, (), warnings, queries),
        extras=whole,
        cost_estimated=any(one.cost_estimated for one in sets),
        prices={k: v for one in reversed(sets) for k, v in one.prices.items()},
    )


def _check_texts(sets: Sequence[EvalSet]) -> None:
    """Refuse an id that stands for two texts."""
    frames = [
        pd.DataFrame({"id": one.query_ids, "text": one.texts.fillna("").astype(str).to_numpy()})
        for one in sets
        if one.texts is not None
    ]
    if not frames:
        return
    several = pd.concat(frames).drop_duplicates()
    twice = several.loc[several["id"].duplicated(), "id"].unique()
    if twice.size:
        shown = ", ".join(map(repr, twice[:_SHOWN])) + (", ..." if twice.size > _SHOWN else "")
        message = f"{twice.size} id(s) stand for different texts: {shown}"
        raise EvalSetError.of("join", message, "give the queries ids apart", place="query_id")


def _queries(sets: Sequence[EvalSet]) -> pd.DataFrame:
    """The query table: the first set's row of each query; columns that any of them has."""
    rows = pd.concat([one.queries for one in sets], ignore_index=True)
    rows = rows.drop_duplicates("query_id").reset_index(drop=True)
    if rows.get("text") is not None and rows["text"].isna().any():
        names = ", ".join(one.name for one in sets if one.texts is None)
        message = f"{names} has no texts and others have"
        raise EvalSetError.of("join", message, "join sets alike", place="queries: text")
    for name in ("conversation_id", "context", "group", "cluster"):
        if name in rows.columns:
            rows[name] = rows[name].where(rows[name].notna(), None)
    for name in (name for name in FLAGS if name in rows.columns):
        rows[name] = rows[name].fillna(False).astype(bool)
    return rows
