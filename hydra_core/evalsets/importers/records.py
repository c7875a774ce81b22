"""What the importers of records share: naming models, gathering raw rows, costs from prices."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

import pandas as pd

from hydra_core.base.errors import Problem
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.evalsets.importers.assemble import Rows, assemble
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.cells import FILE
from hydra_core.evalsets.importers.reading.tables import LINE
from hydra_core.evalsets.rules import model_id_problem


class AskNames(dict[str, str]):
    """Instead of a choice of models: an import stops with `NamesKnown` once names are read."""

    def __bool__(self) -> bool:
        return True


class NamesKnown(Exception):  # noqa: N818 (an answer, not a fault)
    """The names of models that the files hold; nothing was imported.

    Attributes:
        names: As the files name them.
        scores: The scores that may be the quality, where one has to be chosen.
        labels: Label -> how often it stands as feedback; each needs a worth.
    """

    def __init__(
        self,
        names: Sequence[str],
        scores: Sequence[str] = (),
        labels: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(f"the files name {len(names)} models")
        self.names, self.scores, self.labels = tuple(names), tuple(scores), dict(labels or {})


_TOKENS = ("input_tokens", "output_tokens")


@dataclass(slots=True)
class Records:
    """Raw queries and outcomes as they are read, with the costs that had to be estimated."""

    queries: dict[str, list[object]] = field(default_factory=lambda: _columns("text", "group"))
    outcomes: dict[str, list[object]] = field(
        default_factory=lambda: _columns("model", "quality", "cost_usd", *_TOKENS)
    )
    warnings: list[str] = field(default_factory=list)
    estimated: int = 0

    def query(self, place: tuple[str, int], query_id: str, text: str, group: str) -> None:
        """One row that names a query."""
        _append(self.queries, place, query_id, text=text, group=group)

    def outcome(
        self,
        place: tuple[str, int],
        query_id: str,
        model: str,
        quality: object,
        cost_usd: float,
        tokens: tuple[float, float] = (math.nan, math.nan),
    ) -> None:
        """One outcome with its input and output tokens; NaN where a number is not known."""
        shown = {"cost_usd": cost_usd, **dict(zip(_TOKENS, tokens, strict=True))}
        texts = {name: "" if math.isnan(value) else repr(value) for name, value in shown.items()}
        _append(self.outcomes, place, query_id, model=model, quality=quality, **texts)

    def draft(self, source: str, prices: PriceCard, tokens: str, *, scale: float = 1.0) -> Draft:
        """Check everything and line it up; see `assemble`.

        Args:
            tokens: Where the tokens of estimated costs come from, for the price notes.
            scale: The quality that means 1.

        Raises:
            EvalSetError: With every problem found.
        """
        queries, outcomes = text_rows(self.queries), text_rows(self.outcomes)
        unknown = [name for name in _TOKENS if (outcomes[name] == "").all()]
        outcomes = outcomes.drop(columns=unknown)
        rows = Rows(queries, outcomes, tuple(self.warnings))
        need_text = bool((queries["text"] != "").any())
        draft = assemble(rows, source, scale=scale, need_text=need_text)
        prices.require_used(draft.models)
        if not self.estimated:
            return draft
        warning = f"{self.estimated} costs were estimated from prices; none of them was billed"
        return replace(
            draft,
            cost_estimated=True,
            price_notes=prices.notes(draft.models, tokens),
            prices={m: prices.prices[m].price for m in draft.models if m in prices.prices},
            report=replace(draft.report, warnings=(*draft.report.warnings, warning)),
        )


def _columns(*names: str) -> dict[str, list[object]]:
    return {name: [] for name in (FILE, LINE, "query_id", *names)}


def text_rows(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    """The rows, text even where there are none."""
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


def _append(
    columns: dict[str, list[object]], place: tuple[str, int], query_id: str, **cells: object
) -> None:
    values = {FILE: place[0], LINE: place[1], "query_id": query_id, **cells}
    for name, cell in values.items():
        columns[name].append(_text(cell) if name not in (FILE, LINE) else cell)


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None else str(cell)


def number_or_nan(value: object) -> float:
    """A JSON number as float; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    return float(value)


def chosen_models(
    models: Mapping[str, str], known: Sequence[str]
) -> tuple[dict[str, str], list[Problem]]:
    """Upstream name -> model id for the models to import, and what is wrong with the choice.

    Args:
        models: Model id -> upstream name; empty takes every model under its own name.
        known: Upstream names there are.

    Raises:
        NamesKnown: `models` only asks which there are.
    """
    if isinstance(models, AskNames):
        raise NamesKnown(known)
    wanted = dict(models) or {name: name for name in known}
    problems = []
    for model, name in wanted.items():
        bad = model_id_problem(model, f"--model {model[:40]}")
        if bad is not None and not models:
            flag = quote(f"{proposed_ids([name])[name]}={name}")
            bad = replace(bad, remedy=f"name it yourself, such as --model {flag}")
        problems += [bad] if bad is not None else []
        if name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or list(known)[:5]
            remedy = f"models like it: {', '.join(near)}"
            problems.append(Problem(f"{model}={name}", "there is no such model", remedy))
    twice = sorted({name for name in wanted.values() if list(wanted.values()).count(name) > 1})
    problems += [Problem(name, "stands for several models", "name it once") for name in twice]
    return {name: model for model, name in wanted.items()}, problems
