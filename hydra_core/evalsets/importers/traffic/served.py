"""What every traffic importer gathers: served requests, and why others were skipped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.assemble import Rows, assemble
from hydra_core.evalsets.importers.draft import Draft, Dropped
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.cells import FILE
from hydra_core.evalsets.importers.reading.issues import Issues
from hydra_core.evalsets.importers.reading.tables import LINE
from hydra_core.evalsets.importers.records import AskNames, NamesKnown, chosen_models, text_rows
from hydra_core.evalsets.importers.traffic.feedback import Feedback, Labels, require_range
from hydra_core.evalsets.importers.traffic.messages import Asked

_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Served:
    """One request that a model answered; NaN where a number is not known.

    Attributes:
        place: File and line it was read from.
        asked: Its last user message, or why there is none.
        model: As the log names it.
        feedback: How well it was answered.
        cached_input_tokens: Part of the input.
        group: What the query belongs to, such as a harness's task.
    """

    place: tuple[str, int]
    query_id: str
    asked: Asked
    model: str
    feedback: Feedback = field(default_factory=Feedback)
    cost_usd: float = math.nan
    input_tokens: float = math.nan
    output_tokens: float = math.nan
    latency_s: float = math.nan
    conversation_id: str = ""
    cached_input_tokens: float = math.nan
    group: str = ""

    @property
    def problem(self) -> str:
        """Why it makes no outcome whatever its feedback, '' where it may make one."""
        tokens = (self.input_tokens, self.output_tokens, self.cached_input_tokens)
        if self.asked.problem:
            return self.asked.problem
        if not self.query_id.strip():
            return "no id"
        if not self.model:
            return "no model answered"
        texts = (self.query_id, self.model, self.conversation_id, self.group)
        if not _writable(*texts, self.asked.text, self.asked.context):
            return "holds half a character (lone surrogate)"
        if self.cost_usd < 0:
            return "a negative cost"
        if any(count < 0 for count in tokens):
            return "a negative number of tokens"
        if any(count % 1 for count in tokens if not math.isnan(count)):
            return "a number of tokens that is not whole"
        return ""


def _writable(*texts: str) -> bool:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(slots=True)
class Traffic:
    """Served requests as they are read, and what was skipped, by reason.

    Attributes:
        unread: Rows of the files that could not be read at all, and notes on the others.
        labels: Quality of each label that feedback may be given as.
        models: Every model that was met, whether or not its rows were taken.
        scores: The scores that may be the quality.
        zero_is_unknown: Whether a cost of 0 may also stand where the source has no price; then only
            OpenRouter's free models keep it.
    """

    rows: list[Served] = field(default_factory=list)
    unread: Issues = field(default_factory=Issues)
    labels: Labels = field(default_factory=Labels)
    warnings: list[str] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    scores: list[str] = field(default_factory=list)
    zero_is_unknown: bool = True
    _zeros: int = 0
    _shown: dict[str, list[str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def skip(self, reason: str, query_id: str) -> None:
        """Count a row that makes no outcome."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        shown = self._shown.setdefault(reason, [])
        if len(shown) < _EXAMPLES:
            shown.append(query_id[:60])

    def add(self, row: Served) -> None:
        """Take a served request; one without message, model or quality is skipped."""
        quality = self.quality(row)
        if row.problem:
            self.skip(row.problem, row.query_id)
        elif math.isnan(quality):
            self.skip(self.labels.reason(row.feedback), row.query_id)
        elif row.query_id in self._seen:
            self.skip("id of an earlier row", row.query_id)
        else:
            self._seen.add(row.query_id)
            self.rows.append(self.known(row, quality))

    def known(self, row: Served, quality: float) -> Served:
        """The row with its quality, and its cost where that is known."""
        unknown = self.zero_is_unknown and row.cost_usd == 0 and not row.model.endswith(":free")
        self._zeros += unknown
        cost_usd = math.nan if unknown else row.cost_usd
        return replace(row, feedback=Feedback(quality), cost_usd=cost_usd)

    def quality(self, row: Served) -> float:
        """The quality of a row, NaN where it has none; its model counts as met."""
        self.models |= {row.model} if row.model else set()
        return self.labels.quality(row.feedback)

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
            NamesKnown: `models` only asks which there are.
        """
        if isinstance(models, AskNames):
            scores = self.scores if len(self.scores) > 1 else ()
            met = {row.model for row in self.rows} or self.models
            raise NamesKnown(sorted(met), scores, self.labels.met)
        dropped = self._dropped()
        self.labels.require_used()
        if not self.rows:
            reasons = "; ".join(map(str, dropped)) or "there are no rows"
            raise EvalSetError.of(source, f"no outcome is left: {reasons}", self.labels.remedy())
        names, problems = chosen_models(models, sorted({row.model for row in self.rows}))
        if problems:
            raise EvalSetError(source, problems)
        prices.require_used(sorted(set(names.values())))
        kept = [replace(row, model=names[row.model]) for row in self.rows if row.model in names]
        if len(self.rows) > len(kept):
            dropped.append(Dropped("model that was not asked for", len(self.rows) - len(kept)))
        require_range([row.feedback.value for row in kept], scale, source)
        estimated = _priced(kept, prices)
        draft = assemble(_frames(kept), source, scale=scale)
        warnings = [*self.unread.notes, *self.warnings, *draft.report.warnings]
        if self._zeros:
            warnings.append(
                f"{self._zeros:,} requests have a cost of 0, which also stands where no price "
                "is known: it was read as not known"
            )
        warnings += [remedy] if (remedy := self.labels.remedy()) else []
        if estimated:
            warnings += _without_cached_price(kept, prices)
            warnings += [f"{estimated} costs were estimated from prices; none of them was billed"]
            draft = _estimated(draft, prices)
        dropped += draft.report.dropped
        report = replace(draft.report, dropped=tuple(dropped), warnings=tuple(warnings))
        return replace(draft, report=report)

    def _dropped(self) -> list[Dropped]:
        """What was left out: rows that could not be read, then rows that were skipped."""
        unread = [
            Dropped(f"row that {message}", count, shown)
            for message, count, shown in self.unread.counts()
        ]
        return unread + [
            Dropped(reason, self._counts[reason], tuple(shown))
            for reason, shown in self._shown.items()
        ]


def _estimated(draft: Draft, prices: PriceCard) -> Draft:
    """The draft, marked as one whose costs were computed from these prices."""
    return replace(
        draft,
        cost_estimated=True,
        price_notes=prices.notes(draft.models, "recorded tokens"),
        prices={m: prices.prices[m].price for m in draft.models if m in prices.prices},
    )


def _priced(rows: list[Served], prices: PriceCard) -> int:
    """Fill in costs from prices where tokens are known; how many."""
    count = 0
    for number, row in enumerate(rows):
        price = prices.prices.get(row.model)
        known = row.input_tokens > 0 and not math.isnan(row.output_tokens)  # 0: not counted
        if math.isnan(row.cost_usd) and price is not None and known:
            cost_usd = price.cost_usd(row.input_tokens, row.output_tokens, row.cached_input_tokens)
            rows[number] = replace(row, cost_usd=cost_usd)
            count += 1
    return count


def _without_cached_price(rows: Sequence[Served], prices: PriceCard) -> list[str]:
    """Models with cached input that was priced as other input, as a warning."""
    cached = {row.model for row in rows if row.cached_input_tokens > 0}
    full = sorted(
        model
        for model in cached
        if model in prices.prices and prices.prices[model].cached_input_usd_per_mtok is None
    )
    if not full:
        return []
    example = f"--price {full[0]}=INPUT,OUTPUT,cached=PRICE"
    return [
        f"cached input of {', '.join(full)} was priced as other input, so the costs are too high "
        f"where cached input is cheaper: give its price with {example}"
    ]


def _frames(rows: Sequence[Served]) -> Rows:
    same: dict[str, list[Any]] = {
        FILE: [row.place[0] for row in rows],
        LINE: [row.place[1] for row in rows],
        "query_id": [row.query_id for row in rows],
    }
    queries: dict[str, list[Any]] = {
        **same,
        "text": [row.asked.text for row in rows],
        "conversation_id": [row.conversation_id for row in rows],
        "turn": [str(row.asked.turn) for row in rows],
    }
    if not any(row.conversation_id for row in rows):
        del queries["conversation_id"]
    if any(row.group for row in rows):
        queries["group"] = [row.group for row in rows]
    if any(row.asked.context for row in rows):
        queries["context"] = [row.asked.context for row in rows]
    if any(row.asked.has_image for row in rows):
        queries["has_image"] = [str(row.asked.has_image) for row in rows]
    outcomes: dict[str, list[Any]] = {
        **same,
        "model": [row.model for row in rows],
        "quality": [repr(row.feedback.value) for row in rows],
        "cost_usd": [_cell(row.cost_usd) for row in rows],
        "input_tokens": [_cell(row.input_tokens) for row in rows],
        "output_tokens": [_cell(row.output_tokens) for row in rows],
        "cached_input_tokens": [_cell(row.cached_input_tokens) for row in rows],
        "latency_s": [_cell(row.latency_s) for row in rows],
    }
    return Rows(text_rows(queries), text_rows(outcomes))


def _cell(value: float) -> str:
    return "" if math.isnan(value) else repr(value)
