"""What every traffic importer gathers: served requests with their feedback, and why others were
skipped. Feedback is a number, or a label whose quality the operator says.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import pandas as pd

from hydra_core.base.errors import EvalSetError
from hydra_core.base.list_price import FREE
from hydra_core.base.spelling import counted_that
from hydra_core.base.tokens import text_tokens
from hydra_core.evalsets.importers.assemble import Rows, assemble
from hydra_core.evalsets.importers.draft import Draft, Dropped, with_estimates
from hydra_core.evalsets.importers.given import NOTHING, Given, NamesKnown, PriceCard
from hydra_core.evalsets.importers.reading.cells import FILE, LINE, Issues
from hydra_core.evalsets.importers.traffic.feedback import (
    Feedback,
    Labels,
    require_range,
    require_score,
)
from hydra_core.evalsets.importers.traffic.messages import Asked

_EXAMPLES: Final = 3
_TOKENS: Final = "recorded tokens, or where there are none bytes / 4 of prompt and answer,"
#: The numbers of a request, NaN where they are not known.
FIGURES: Final = (
    *("cost_usd", "input_tokens", "output_tokens", "cached_input_tokens", "latency_s"),
)


@dataclass(frozen=True, slots=True)
class Served:
    """One request that a model answered; NaN where a number is not known.

    Attributes:
        place: File and line it was read from.
        asked: Its last user message, or why there is none.
        cached_input_tokens: Part of the input.
        group: What the query belongs to, such as a harness's task.
        gates: Further columns that hard gates read, as an eval set has them.
        length: Tokens of prompt and answer by their length, for a price where none were counted.
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
    gates: Mapping[str, str] = field(default_factory=dict)
    length: tuple[float, float] = (math.nan, math.nan)

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
        texts = (self.query_id, self.model, self.conversation_id, self.group, *self.gates.values())
        if not _writable(*texts, self.asked.text, self.asked.context):
            return "holds half a character (lone surrogate)"
        if self.cost_usd < 0:
            return "a negative cost"
        if any(count < 0 for count in tokens):
            return "a negative number of tokens"
        if any(count % 1 for count in tokens if not math.isnan(count)):
            return "a number of tokens that is not whole"
        return ""


def whole_tokens(
    read: float,
    written: float,
    *,
    cached: float = math.nan,
    stored: float = math.nan,
    thought: float = math.nan,
    total: float = math.nan,
    apart: bool = False,
) -> tuple[float, float]:
    """Input tokens with cached ones among them, and output tokens with those of reasoning.

    Anthropic counts what was read from its cache (`cached`) and put there (`stored`) beside the
    input; xAI and Gemini count reasoning beside the answer, or in the total alone. A total that
    fits says so; without one a part that is larger than its whole stands beside it.

    Args:
        apart: Whether parts stand beside their whole where the total does not say otherwise.
    """
    cached, stored, thought = (
        0.0 if math.isnan(count) else count for count in (cached, stored, thought)
    )
    beside = cached + stored
    inputs = [n for n in (read, read + beside, read + cached, read + stored) if not n < beside]
    outputs = [n for n in (written, written + thought) if not n < thought]
    if not inputs or not outputs:  # negative counts, which are refused elsewhere
        return read, written
    for one, other in itertools.product(inputs, outputs):
        if one + other == total:
            return one, other
    if apart:
        return read + beside, written + thought
    rest = total - inputs[0] - outputs[0]
    return inputs[0], outputs[0] + rest if rest > 0 and not thought else outputs[0]


def _writable(*texts: str) -> bool:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


#: A request with every score that it has.
_Scored: TypeAlias = tuple[Served, Mapping[str, Feedback]]


@dataclass(slots=True)
class Traffic:
    """Served requests as they are read, and what was skipped, by reason.

    Attributes:
        unread: Rows of the files that could not be read at all, and notes on the others.
        models: Every model that was met, whether or not its rows were taken.
        scores: The scores that may be the quality.
        zero_is_unknown: Whether a cost of 0 may also stand where the source has no price; then only
            OpenRouter's free models keep it.
    """

    given: Given = NOTHING
    zero_is_unknown: bool = True
    labels: Labels = field(init=False)
    rows: list[Served] = field(default_factory=list)
    unread: Issues = field(default_factory=Issues)
    warnings: list[str] = field(default_factory=list)
    models: set[str] = field(default_factory=set)
    scores: list[str] = field(default_factory=list)
    _zeros: int = 0
    _skipped: dict[str, Dropped] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.labels = Labels(self.given.labels)

    def skip(self, reason: str, query_id: str) -> None:
        """Count a row that makes no outcome."""
        before = self._skipped.get(reason, Dropped(reason, 0))
        examples = (*before.examples, query_id[:60])[:_EXAMPLES]
        self._skipped[reason] = Dropped(reason, before.count + 1, examples)

    def add(self, row: Served) -> None:
        """Take a served request; one without message, model or quality is skipped.

        Of several rows of a request the first with a cost counts: another may be of an attempt or a
        stream that was not finished.
        """
        rated = self.rated(row)
        if rated is None:
            return
        place = self._seen.setdefault(row.query_id, len(self.rows))
        if place == len(self.rows):
            self.rows.append(self.priced(rated))
            return
        self.skip("id of an earlier row", row.query_id)
        if math.isnan(self.rows[place].cost_usd) and row.cost_usd > 0:
            self.rows[place] = rated

    def priced(self, row: Served) -> Served:
        """The row with its cost where that is known."""
        if not self.zero_is_unknown or row.cost_usd != 0 or row.model.endswith(":free"):
            return row
        self._zeros += 1
        return replace(row, cost_usd=math.nan)

    def rated(self, row: Served) -> Served | None:
        """The row with its quality, None where it makes no outcome; its model counts as met."""
        self.models |= {row.model} if row.model else set()
        quality = self.labels.quality(row.feedback)
        if row.problem:
            self.skip(row.problem, row.query_id)
        elif math.isnan(quality):
            self.skip(self.labels.reason(row.feedback), row.query_id)
        else:
            read, _ = whole_tokens(
                row.input_tokens, row.output_tokens, cached=row.cached_input_tokens
            )
            return replace(row, feedback=Feedback(quality), input_tokens=read)
        return None

    def add_scored(self, rows: Sequence[_Scored], source: str) -> None:
        """Take requests, each with the one score that counts; '' stands for any score.

        Raises:
            EvalSetError: The score is not there, or there are several and none was chosen.
        """
        self.choose_score(sorted({name for _, scores in rows for name in scores if name}), source)
        wanted = self.given.score
        for served, scores in rows:
            first = next(iter(scores.values()), None)
            feedback = scores.get(wanted, scores.get("")) if wanted else first
            self.add(replace(served, feedback=feedback or Feedback()))

    def choose_score(
        self, scores: list[str], source: str, among: Sequence[str] | None = None
    ) -> None:
        """Refuse a choice that the scores do not allow, unless names alone are asked for.

        Args:
            scores: Those of which one has to be chosen.
            among: All that may be named, where it is not them alone.
        """
        self.scores = scores
        if not self.given.asks:
            known = among if among is not None and self.given.score else scores
            require_score(known, self.given.score, source)

    def draft(self, source: str) -> Draft:
        """The eval set, one outcome a query; where a model has no price costs stay unknown.

        Raises:
            EvalSetError: Nothing is left (with the reasons), or rows are not valid.
            NamesKnown: The operator only asks which models there are.
        """
        given = self.given
        if given.asks:
            scores = self.scores if len(self.scores) > 1 else ()
            met = {row.model for row in self.rows} or self.models
            raise NamesKnown(sorted(met), scores, self.labels.met)
        unread = self.unread.counts()
        dropped = [Dropped(f"row that {what}", count, shown) for what, count, shown in unread]
        dropped += self._skipped.values()
        self.labels.require_used()
        if not self.rows:
            reasons = "; ".join(map(str, dropped)) or "there are no rows"
            raise EvalSetError.of(source, f"no outcome is left: {reasons}", self.labels.remedy())
        names, problems = given.chosen_models(sorted({row.model for row in self.rows}))
        EvalSetError.raise_any(source, problems)
        given.prices.require_used(sorted(set(names.values())))
        kept = [replace(row, model=names[row.model]) for row in self.rows if row.model in names]
        if len(self.rows) > len(kept):
            dropped.append(Dropped("model that was not asked for", len(self.rows) - len(kept)))
        require_range([row.feedback.value for row in kept], given.scale, source)
        estimated = _priced(kept, given.prices)
        draft = assemble(_frames(kept), source, scale=given.scale)
        warnings = [*self.unread.notes, *self.warnings, *draft.report.warnings]
        if self._zeros:
            have = counted_that(self._zeros, "request", "has", "have")
            warnings.append(
                f"{have} a cost of 0, which also stands where no price is known: it was read as "
                "not known; --price ID=IN,OUT computes it, --price ID=free says that it is 0"
            )
        warnings += [remedy] if (remedy := self.labels.remedy()) else []
        warnings += _without_tokens(kept, given.prices)
        warnings += _without_cached_price(kept, given.prices) if estimated else []
        dropped += draft.report.dropped
        report = replace(draft.report, dropped=tuple(dropped), warnings=tuple(warnings))
        draft = replace(draft, report=report)
        return with_estimates(draft, estimated, given.prices, _TOKENS)


def _priced(rows: list[Served], prices: PriceCard) -> int:
    """Fill in costs from prices and tokens, else from the length of texts; how many."""
    count = 0
    for i, row in enumerate(rows):
        price = prices.prices.get(row.model)
        if not math.isnan(row.cost_usd) or price is None:
            continue
        read, written = row.input_tokens, row.output_tokens
        if not read > 0 or math.isnan(written):  # 0: not counted
            read, written = row.length
            read = text_tokens(row.asked.context + row.asked.text) if math.isnan(read) else read
            written = (price.answer_tokens or math.nan) if math.isnan(written) else written
        tokens = (read, written, row.cached_input_tokens)
        cost = 0.0 if price.price == FREE else price.price.usd_of_one(*tokens)
        rows[i] = replace(row, cost_usd=cost)
        count += not math.isnan(cost)
    return count


def _without_tokens(rows: Sequence[Served], prices: PriceCard) -> list[str]:
    """Models whose price made no cost, as nobody knows their tokens, as a warning."""
    lacking = {row.model for row in rows if row.model in prices.prices}
    lacking -= {row.model for row in rows if not math.isnan(row.cost_usd)}
    return [
        f"the price of {model} made no cost, as the tokens of its answers were not recorded: give "
        f"their mean with --price {model}=INPUT,OUTPUT,TOKENS"
        for model in sorted(lacking)
    ]


def _without_cached_price(rows: Sequence[Served], prices: PriceCard) -> list[str]:
    """Models with cached input that was priced as other input, as a warning."""
    cached = {row.model for row in rows if row.cached_input_tokens > 0}
    priced = {model: one.price for model, one in prices.prices.items() if model in cached}
    full = sorted(
        model
        for model, price in priced.items()
        if price.cached_input_usd_per_mtok is None and price != FREE
    )
    if not full:
        return []
    example = f"--price {full[0]}=INPUT,OUTPUT,cached=PRICE"
    return [
        f"cached input of {', '.join(full)} was priced as other input, so the costs are too high "
        f"where cached input is cheaper: give its price with {example}"
    ]


def _frames(rows: Sequence[Served]) -> Rows:
    """The rows as text; what no query has is left out of the queries."""
    same = [{FILE: row.place[0], LINE: row.place[1], "query_id": row.query_id} for row in rows]
    queries = [
        {
            **place,
            "text": row.asked.text,
            "conversation_id": row.conversation_id,
            "turn": str(row.asked.turn),
            "group": row.group,
            "context": row.asked.context,
            "has_image": "true" if row.asked.has_image else "",
            **row.gates,
        }
        for place, row in zip(same, rows, strict=True)
    ]
    outcomes = [
        {**place, "model": row.model, "quality": repr(row.feedback.value)}
        | {name: "" if math.isnan(n := getattr(row, name)) else repr(n) for name in FIGURES}
        for place, row in zip(same, rows, strict=True)
    ]
    frame = pd.DataFrame(queries, dtype=object)
    return Rows(frame.loc[:, (frame != "").any()], pd.DataFrame(outcomes, dtype=object))
