"""Real outcomes replayed per conversation: every sticky mode, with cache reads and switch losses.

The router plays every turn in order, with its own session store. A turn costs what its tokens cost
at the catalog's prices: what the same model read on the turn before is a cache read, but not after
a switch, nor where its model reads fewer tokens than before (the history was rewritten). Taken as
given: a turn's outcome is the recorded one of its model, and no session expires.
"""

from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import pandas as pd

from hydra_core.base.intervals import COST, SHARE, Interval
from hydra_core.base.types import CostBasis, FloatArray, IntArray, ModelStatus, Rule, StickyMode
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.replay.significance import mean_interval, saving_interval
from hydra_core.replay.sweep import Sweep
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions, TurnTokens, conversation_cost

_COLUMNS = ("conversation_id", "turn")
_TOKENS = ("input_tokens", "output_tokens")
#: (n, m) tokens read and written, rows and columns of the replay.
_Tokens = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, slots=True)
class ModeOutcome:
    """One sticky mode over all conversations; intervals are over these, or clusters of them.

    Attributes:
        usd_per_turn: Mean over turns, cache reads counted.
        cs: 1 - cost / cost of always the strong model, whose cache stays warm.
        cached_share: Share of the tokens read that were billed as cache reads.
        switches: Changes of model per conversation.
        lost_usd: What a warm cache would have saved on the turns after a switch, per conversation.
    """

    mode: StickyMode
    quality: Interval
    usd_per_turn: Interval
    cs: Interval
    cached_share: float
    switches: float
    lost_usd: float


@dataclass(frozen=True, slots=True)
class ConversationReplay:
    """Every sticky mode on the same conversations.

    Attributes:
        left_out: Conversations left out, since a turn lacks an outcome, a score or tokens.
        strong: The model that savings are measured against.
        without_price: Models of the pool without a cached price: they read no cache.
    """

    turns: int
    conversations: int
    left_out: int
    strong: str
    without_price: tuple[str, ...]
    modes: tuple[ModeOutcome, ...]


def why_per_query(sweep: Sweep) -> str:
    """Why a set can be replayed per query only; '' where conversations can be played."""
    columns = [name for name in _COLUMNS if name not in sweep.evalset.queries.columns]
    lacking = columns + [name for name in _TOKENS if name not in sweep.evalset.extras]
    if lacking:
        return f"Replayed per query: the set has no {', '.join(lacking)}."
    if sweep.data.unmeasured:
        names = ", ".join(sweep.data.unmeasured)
        return f"Replayed per query: the set has no tokens and outcomes of {names}."
    if sweep.rule is Rule.VALUE:
        return "Replayed per query: conversations are played under the shortfall rule only."
    if not _whole_conversations(sweep)[0]:
        return "Replayed per query: no conversation is complete, with tokens on every turn."
    return ""


def replay_conversations(sweep: Sweep, tau: float, baseline: str) -> ConversationReplay | None:
    """Play every complete conversation in every mode at a tau, or None (see `why_per_query`)."""
    if why_per_query(sweep):
        return None
    conversations, left_out = _whole_conversations(sweep)
    order, sizes = np.concatenate(conversations), [len(rows) for rows in conversations]
    clusters = sweep.data.clusters
    unit = None if clusters is None else pd.factorize(clusters[order])[0]
    strong = sweep.data.pool.ids.index(baseline)
    tokens = _token_matrices(sweep)
    always = _played(sweep, tokens, conversations, [np.full(size, strong) for size in sizes])
    modes = []
    for mode in StickyMode:
        router = _router(sweep, tau, mode)
        routed = [_routed(router, sweep, tokens[0], rows) for rows in conversations]
        played = _played(sweep, tokens, conversations, routed)
        switches = sum(int((part[1:] != part[:-1]).sum()) for part in routed)
        choice = np.concatenate(routed)
        modes.append(
            ModeOutcome(
                mode=mode,
                quality=mean_interval(sweep.data.quality[order, choice], unit).clipped(*SHARE),
                usd_per_turn=mean_interval(played.cost_usd, unit).clipped(*COST),
                cs=saving_interval(played.cost_usd, always.cost_usd, unit),
                cached_share=played.cached / max(played.read, 1.0),
                switches=switches / len(conversations),
                lost_usd=played.lost_usd / len(conversations),
            )
        )
    pool = [sweep.catalog.model(name) for name in sweep.data.pool.ids]
    return ConversationReplay(
        turns=len(order),
        conversations=len(conversations),
        left_out=left_out,
        strong=f"always {baseline}",
        without_price=tuple(m.id for m in pool if m.cached_input_usd_per_mtok is None),
        modes=tuple(modes),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Played:
    cost_usd: FloatArray
    cached: float
    read: float
    lost_usd: float


def _played(
    sweep: Sweep, tokens: _Tokens, conversations: list[IntArray], choices: list[IntArray]
) -> _Played:
    models = {model.id: model for model in sweep.catalog.models}
    ids = sweep.data.pool.ids
    costs: list[float] = []
    cached = read = lost = 0.0
    for rows, chosen in zip(conversations, choices, strict=True):
        turns, fresh = _turn_tokens(tokens, rows, chosen)
        found = conversation_cost(models, [ids[i] for i in chosen], turns, fresh)
        for at, (turn, cost) in enumerate(zip(turns, found, strict=True)):
            costs.append(cost.cost_usd)
            cached += turn.history if cost.cached else 0
            read += turn.history + turn.message
            switched = at > 0 and chosen[at] != chosen[at - 1] and not fresh[at]
            lost += cost.lost_usd if switched else 0.0
    return _Played(np.array(costs), cached, read, lost)


def _turn_tokens(
    tokens: _Tokens, rows: IntArray, chosen: IntArray
) -> tuple[list[TurnTokens], list[bool]]:
    """Each turn's tokens as its model counts them, and whether the history was rewritten."""
    read, written = tokens
    turns, fresh = [], []
    for at, (row, model) in enumerate(zip(rows.tolist(), chosen.tolist(), strict=True)):
        taken = int(read[row, model])
        before = int(read[rows[at - 1], model]) if at else 0
        rewritten = at > 0 and taken < before
        history = 0 if rewritten else min(before, taken)
        turns.append(TurnTokens(history, taken - history, int(written[row, model])))
        fresh.append(rewritten)
    return turns, fresh


def _token_matrices(sweep: Sweep) -> _Tokens:
    """Tokens read and written, (n, m) in the rows and columns of the replay."""
    known = {model: column for column, model in enumerate(sweep.evalset.models)}
    columns = np.array([known[model] for model in sweep.data.pool.ids])
    at = np.ix_(sweep.data.rows, columns)
    read, written = (sweep.evalset.extras[name][at] for name in _TOKENS)
    return read, written


def _whole_conversations(sweep: Sweep) -> tuple[list[IntArray], int]:
    """Rows of the replay, turn by turn, of every complete conversation; how many are left out."""
    queries = sweep.evalset.queries
    named = queries["conversation_id"].notna() & queries["turn"].notna()
    whole = queries.loc[named, "conversation_id"].value_counts()
    here = queries.iloc[sweep.data.rows]
    tokens = np.isfinite(np.concatenate(_token_matrices(sweep), axis=1)).all(axis=1)
    kept = pd.DataFrame(
        {
            "conversation": here["conversation_id"].to_numpy(),
            "turn": pd.to_numeric(here["turn"]).to_numpy(),
            "row": np.arange(len(here)),
        }
    )[tokens & here["conversation_id"].notna().to_numpy() & here["turn"].notna().to_numpy()]
    found = [
        part.sort_values("turn", kind="stable")["row"].to_numpy(dtype=np.intp)
        for name, part in kept.groupby("conversation", sort=True)
        if len(part) == whole[name] and not part["turn"].duplicated().any()
    ]
    return found, len(whole) - len(found)


class _Known:
    """A scorer that knows the requirements of every row; a row's text is its number."""

    def __init__(self, requirements: FloatArray) -> None:
        self._requirements = requirements

    def predict(
        self, texts: list[str], turns: list[int] | None = None, contexts: list[str] | None = None
    ) -> Prediction:
        del turns, contexts
        rows = [int(text) for text in texts]
        count = len(rows)
        return Prediction(
            self._requirements[rows], np.zeros(count, np.intp), np.zeros(count, np.bool_)
        )


def _router(sweep: Sweep, tau: float, mode: StickyMode) -> Router:
    """The router over the replay's own pool: its capabilities, cost order and weights."""
    catalog, pool = sweep.catalog, sweep.data.pool
    models = tuple(
        replace(
            catalog.model(name),
            status=ModelStatus.ACTIVE,
            retire_on=None,
            overrides=dict(zip(catalog.dimensions, capabilities, strict=True)),
        )
        for name, capabilities in zip(pool.ids, pool.capabilities.tolist(), strict=True)
    )
    policy = replace(
        catalog.policy,
        tau=tau,
        weights=sweep.weights,
        sticky=replace(catalog.policy.sticky, mode=mode),
        cost_basis=CostBasis.REALISED,
    )
    return Router(
        replace(catalog, models=models, policy=policy, realised_costs=None),
        _Known(sweep.data.requirements),
        sessions=MemorySessions(clock=lambda: 0.0),
        realised_cost=dict(zip(pool.ids, pool.cost.tolist(), strict=True)),
        today=lambda: date.min,
    )


def _routed(router: Router, sweep: Sweep, read: FloatArray, rows: IntArray) -> IntArray:
    """(t,) pool index that each turn of one conversation is routed to."""
    ids = sweep.data.pool.ids
    place = {model: at for at, model in enumerate(ids)}
    closed = sweep.data.closed
    name = str(rows[0])
    choice: list[int] = []
    for at, row in enumerate(rows.tolist()):
        rewritten = at > 0 and bool((read[row] < read[rows[at - 1]]).all())
        query = Query(
            str(row),
            at + 1,
            name,
            tuple(str(before) for before in rows[:at]),
            compacted=rewritten,
            current=ids[choice[-1]] if choice else None,
            deny=frozenset(() if closed is None else (ids[i] for i in np.flatnonzero(closed[row]))),
        )
        choice.append(place[router.route(query).model])
    return np.asarray(choice, dtype=np.intp)
