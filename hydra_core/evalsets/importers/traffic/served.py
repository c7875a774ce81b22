"""What every traffic importer gathers: served requests, and why others were skipped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hydra_core.base.errors import EvalSetError, Problem, ProblemsError
from hydra_core.evalsets.importers.assemble import Rows, assemble
from hydra_core.evalsets.importers.draft import Draft, Dropped
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.cells import FILE, Form
from hydra_core.evalsets.importers.reading.tables import LINE
from hydra_core.evalsets.importers.records import chosen_models, text_rows
from hydra_core.routing.conversations.context import LastTurn, last_turn
from hydra_core.routing.conversations.messages import read_messages

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Served:
    """One request that a model answered; NaN where a number is not known.

    Attributes:
        place: File and line it was read from.
        model: As the log names it.
        quality: In [0, 1] once divided by the import's scale.
        cached_input_tokens: Part of the input.
        context: What came before in the conversation, '' where that is not known.
    """

    place: tuple[str, int]
    query_id: str
    text: str
    model: str
    quality: float
    cost_usd: float = math.nan
    input_tokens: float = math.nan
    output_tokens: float = math.nan
    latency_s: float = math.nan
    conversation_id: str = ""
    turn: int = 1
    cached_input_tokens: float = math.nan
    context: str = ""


@dataclass(slots=True)
class Traffic:
    """Served requests as they are read, and what was skipped, by reason."""

    rows: list[Served] = field(default_factory=list)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str, query_id: str) -> None:
        """Count a row that makes no outcome."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        shown = self.skipped.setdefault(reason, [])
        if len(shown) < _EXAMPLES:
            shown.append(query_id[:60])

    def add(self, row: Served) -> None:
        """Take a served request; without text, model or quality it is skipped."""
        if not row.text.strip():
            self.skip("no message was stored", row.query_id)
        elif not row.model:
            self.skip("no model answered", row.query_id)
        elif math.isnan(row.quality):
            self.skip("no feedback", row.query_id)
        else:
            self.rows.append(row)

    def draft(
        self,
        source: str,
        models: Mapping[str, str],
        prices: PriceCard,
        *,
        scale: float = 1.0,
    ) -> Draft:
        """The eval set, one outcome a query.

        Args:
            models: Model id -> name in the log; empty takes every model under its own name.
            prices: For rows without a cost; where a model has no price the cost stays unknown.
            scale: The quality that means 1.

        Raises:
            EvalSetError: Nothing is left (with the reasons), or rows are not valid.
        """
        dropped = [
            Dropped(reason, self._counts[reason], tuple(shown))
            for reason, shown in self.skipped.items()
        ]
        if not self.rows:
            reasons = "; ".join(map(str, dropped)) or "there are no rows"
            raise EvalSetError(source, [Problem("", f"no outcome is left: {reasons}")])
        names, problems = chosen_models(models, sorted({row.model for row in self.rows}))
        if problems:
            raise EvalSetError(source, problems)
        kept = [replace(row, model=names[row.model]) for row in self.rows if row.model in names]
        if len(self.rows) > len(kept):
            dropped.append(Dropped("model that was not asked for", len(self.rows) - len(kept)))
        estimated = _priced(kept, prices)
        draft = assemble(_frames(kept), source, form=Form(scale=scale))
        report = replace(draft.report, dropped=(*dropped, *draft.report.dropped))
        if not estimated:
            return replace(draft, report=report)
        warning = f"{estimated} costs were estimated from prices; none of them was billed"
        return replace(
            draft,
            report=replace(report, warnings=(*report.warnings, warning)),
            cost_estimated=True,
            price_notes=prices.notes(draft.models, "recorded tokens"),
            prices={m: prices.prices[m].price for m in draft.models if m in prices.prices},
        )


def _priced(rows: list[Served], prices: PriceCard) -> int:
    """Fill in costs from prices where tokens are known; how many."""
    count = 0
    for number, row in enumerate(rows):
        price = prices.prices.get(row.model)
        known = not math.isnan(row.input_tokens + row.output_tokens)
        if math.isnan(row.cost_usd) and price is not None and known:
            cost_usd = price.cost_usd(row.input_tokens, row.output_tokens)
            rows[number] = replace(row, cost_usd=cost_usd)
            count += 1
    return count


def _frames(rows: Sequence[Served]) -> Rows:
    same: dict[str, list[Any]] = {
        FILE: [row.place[0] for row in rows],
        LINE: [row.place[1] for row in rows],
        "query_id": [row.query_id for row in rows],
    }
    queries: dict[str, list[Any]] = {
        **same,
        "text": [row.text for row in rows],
        "conversation_id": [row.conversation_id for row in rows],
        "turn": [str(row.turn) for row in rows],
    }
    if not any(row.conversation_id for row in rows):
        del queries["conversation_id"]
    if any(row.context for row in rows):
        queries["context"] = [row.context for row in rows]
    outcomes: dict[str, list[Any]] = {
        **same,
        "model": [row.model for row in rows],
        "quality": [repr(row.quality) for row in rows],
        "cost_usd": [_cell(row.cost_usd) for row in rows],
        "input_tokens": [_cell(row.input_tokens) for row in rows],
        "output_tokens": [_cell(row.output_tokens) for row in rows],
        "cached_input_tokens": [_cell(row.cached_input_tokens) for row in rows],
        "latency_s": [_cell(row.latency_s) for row in rows],
    }
    return Rows(text_rows(queries), text_rows(outcomes))


def _cell(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def last_message(messages: Any) -> LastTurn:  # noqa: ANN401 (decoded JSON)
    """The current user message, its turn and context; '' where it cannot be read."""
    try:
        return last_turn(read_messages(messages))
    except ProblemsError:
        return LastTurn("")
