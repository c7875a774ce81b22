"""From a chat request to a decision: route, draw, order what comes next."""

import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from hydra_core.base.errors import RoutingError
from hydra_core.base.types import Catalog, ModelStatus
from hydra_core.live.canary import CANARY, MAIN
from hydra_core.routing.decision import EXPLORED, Decision, fallbacks
from hydra_core.routing.matcher import choose_one, value_shortfall_of_one
from hydra_core.routing.query import Query
from hydra_core.routing.sessions import Sessions, session_keys
from hydra_core.server.canary import Canaries, Canary
from hydra_core.server.chat import ChatRequest
from hydra_core.server.decision_ids import DecisionIds, ids_of
from hydra_core.server.exploration import Draw, Exploration
from hydra_core.server.live import LiveCatalog, Serving
from hydra_core.server.settings import AUTO
from hydra_core.server.teams import Share, Teams
from hydra_core.server.upstream.failures import Health

NAMED = "named"
#: Weight of the newest answer in a mean.
_NEWEST: Final = 0.05
#: So many answers are better than what the catalog says.
_ENOUGH: Final = 5
#: Answers are told apart by so many output tokens.
_LENGTHS: Final = (100, 300, 1_000, 3_000)


class UnknownModelError(RoutingError):
    """A model was asked for by name that the catalog does not route to."""


class RefusedError(Exception):
    """No model may serve a request, for the reason in `error`.

    `serving` is the revision that said so, `arm` as in `Decided`.
    """

    def __init__(self, error: RoutingError, serving: Serving, arm: str) -> None:
        self.error, self.serving, self.arm = error, serving, arm
        super().__init__(str(error))


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """One decision that the service made.

    Attributes:
        model: What is served first: the decision's model, or the one that exploration drew.
        propensities: (m,) probability of every candidate.
        arm: `canary` or `main` while a canary runs.
        share: What the policy of the asker's team made of it; None without one.
    """

    id: str
    at: datetime
    request: ChatRequest
    serving: Serving
    decision: Decision
    model: str
    propensities: tuple[float, ...]
    decide_ms: float
    arm: str = ""
    share: Share | None = None

    @property
    def explored(self) -> bool:
        """Whether chance, not the rule, chose."""
        return self.model != self.decision.model

    @property
    def cause(self) -> str:
        """Why, in one word: the decision's cause, or that chance chose."""
        return EXPLORED if self.explored else self.decision.cause.value

    @property
    def rule(self) -> str:
        """How the model was chosen: the policy's rule, or `named` by the client."""
        return NAMED if self.request.model != AUTO else self.decision.rule.value

    @property
    def knob(self) -> float:
        """tau, or V in USD, as the policy has it for the asker's team."""
        return self.serving.catalog.policy.knob if self.share is None else self.share.knob

    @property
    def reason(self) -> str:
        """Why, in one sentence."""
        if self.request.model != AUTO:
            return "Asked for by name."
        if self.explored:
            return "Tried at random among the capable models (exploration)."
        reason, note = self.decision.reason, self.share.note if self.share is not None else ""
        return reason if note in reason else f"{reason} {note}"

    def next_models(self) -> tuple[str, ...]:
        """Which models to ask when `model` does not answer, best first."""
        if self.request.model != AUTO:
            return ()
        order = (self.decision.model, *fallbacks(self.decision))
        return tuple(name for name in order if name != self.model)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a decision; tokens and cost are None where nobody said them."""

    status: str
    served: str = ""
    attempts: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    usage: str = ""
    about_usd: float | None = None
    upstream_status: int | None = None


class Decider:
    """Decides requests by the revision in use. Safe to share between threads.

    Args:
        health: What this process saw of the models.
        sessions: The conversations' models, as the router has them.
        canaries: None for never one.
        ids: None for names that hold in this process.
    """

    def __init__(
        self,
        live: LiveCatalog,
        health: Health,
        exploration: Exploration,
        sessions: Sessions,
        canaries: Canaries | None = None,
        ids: DecisionIds | None = None,
        teams: Teams | None = None,
    ) -> None:
        self.expected = Expected()
        self.ids, self.teams = ids or ids_of(None), teams or Teams()
        self.live, self.health, self._canaries = live, health, canaries
        self._exploration, self._sessions = exploration, sessions

    def start(self) -> None:
        self.live.start()
        if self._canaries is not None:
            self._canaries.start()

    def close(self) -> None:
        self.live.close()
        if self._canaries is not None:
            self._canaries.close()

    @property
    def canary(self) -> Canary | None:
        return self._canaries.current if self._canaries is not None else None

    def budgets_used(self) -> dict[str, float]:
        """Team -> share of its budget that it has used."""
        ledger, teams = self.teams.ledger, self.live.now.catalog.policy.teams
        if ledger is None:
            return {}
        return {n: ledger.used(n, team.budget) for n, team in teams.items() if team.budget}

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not work as it should."""
        every = (self.live.problem, self._canaries.problem if self._canaries else "")
        return tuple(filter(None, every))

    def decide(self, request: ChatRequest, *, remember: bool = True) -> Decided:
        """Choose the model for one request.

        Args:
            remember: False for a decision that is only asked for, and leaves no trace.

        Raises:
            RefusedError: No model can serve it, or the named one is not known.
        """
        start = time.perf_counter()
        serving, arm = self._arm(request)
        try:
            return self._decided(request, serving, arm, start, remember=remember)
        except RoutingError as error:
            raise RefusedError(error, serving, arm) from error

    def _decided(
        self, request: ChatRequest, serving: Serving, arm: str, start: float, *, remember: bool
    ) -> Decided:
        if unspoken := serving.not_speaking.get(request.form):
            request = replace(request, query=replace(request.query, unspoken=unspoken))
        query = _keyed(request)
        if request.model != AUTO:
            known = [spec.id for spec in serving.router.models]
            if request.model not in known:
                raise UnknownModelError(_unknown(request.model, known, serving), http_status=404)
            query = _named_query(query, request.model)
        query = self._timed(query, serving)
        health = {**self.health.now(), **request.health}

        def route(query: Query, knob: float | None = None) -> tuple[Decision, Draw]:
            made = serving.router.route(query, health=health, remember=remember, knob=knob)
            return made, self._exploration.draw(made)

        share = None
        if request.team in serving.catalog.policy.teams:
            spend = remember
            decision, draw, share = self.teams.decide(serving, request, query, route, spend=spend)
        else:
            decision, draw = route(query)
        decided = Decided(
            self.ids.new(request.caller),
            datetime.now(UTC),
            request,
            serving,
            decision,
            draw.model,
            draw.propensities,
            1e3 * (time.perf_counter() - start),
            arm,
            share,
        )
        if decided.explored and remember:
            self.moved(decided, draw.model)
        return decided

    def _timed(self, query: Query, serving: Serving) -> Query:
        limited = query.max_s is not None or query.max_ttft_s is not None
        if not limited and not serving.catalog.policy.second_usd:
            return query
        return replace(query, expected=self.expected.times(serving.catalog, query.output_tokens))

    def _arm(self, request: ChatRequest) -> tuple[Serving, str]:
        """The revision that decides, and the arm it is; none for a model asked for by name."""
        canary = self.canary
        if canary is None or canary.stopped or request.model != AUTO:
            return self.live.now, ""
        on_canary = canary.takes(request.query)
        return (self.live.now, MAIN) if on_canary is None else (on_canary, CANARY)

    def moved(self, decided: Decided, model: str) -> None:
        """The conversation is on another model than decided: its prompt cache is there now."""
        sticky = decided.serving.catalog.policy.sticky
        key = session_keys(sticky.mode, _keyed(decided.request)).remember
        if key is not None and decided.request.model == AUTO:
            self._sessions.put(key, model, sticky.ttl_s)

    def spent(self, decided: Decided, cost_usd: float | None) -> None:
        """Count the cost of a request that was tried."""
        if decided.explored and cost_usd:
            self._exploration.spent(cost_usd)


def vetoed_choice(decision: Decision) -> str:
    """The model that the rule would have chosen but for its health, '' for none."""
    healthy = decision.health >= decision.health_floor
    if not decision.scored or bool(healthy.all()):
        return ""
    ids, valued, tau = decision.pool.ids, decision.valuation, decision.tau
    rows = [i for i, name in enumerate(ids) if name not in decision.gates]
    if valued is None:
        cost, short = decision.pool.cost[rows].tolist(), decision.shortfalls[rows].tolist()
    else:
        cost, tau = valued.weighed_usd[rows].tolist(), 0.0
        short = value_shortfall_of_one(valued.success[rows].tolist(), cost, valued.value_usd)
    best = rows[choose_one(short, cost, tau)]
    return "" if healthy[best] or ids[best] == decision.model else ids[best]


def _keyed(request: ChatRequest) -> Query:
    """The query under the caller's own key: nobody reaches another caller's conversation."""
    key, caller = request.query.conversation_id, request.caller
    if key is None or not caller:
        return request.query
    return replace(request.query, conversation_id=f"{len(caller)}:{caller}:{key}")


def _unknown(model: str, known: Sequence[str], serving: Serving) -> str:
    """Why a model cannot be asked for by name, and which can."""
    why = f"there is no model {model[:100]!r}"
    spec = next((one for one in serving.catalog.models if one.id == model), None)
    if spec is not None:
        lacking = sorted(serving.catalog.policy.require - spec.tags)
        off = "is disabled" if spec.status is ModelStatus.DISABLED else "is retired"
        gone = f"lacks the tags {', '.join(lacking)}" if lacking else off
        why = f"the model {model!r} is not served: it {gone}"
    return f"{why}; ask for '{AUTO}' to be routed, or for one of {', '.join(known)}"


def _named_query(query: Query, model: str) -> Query:
    """The query for a model asked for by name: its upstream judges the request itself."""
    return replace(
        query,
        allow=frozenset({model}),
        conversation_id=None,
        has_image=False,
        needs_tools=False,
        needs=frozenset(),
        context_tokens=0,
        output_tokens=0,
    )


@dataclass(slots=True)
class _Mean:
    """A decaying mean that begins as a plain one."""

    n: int = 0
    value: float = 0.0

    def add(self, value: float) -> None:
        self.n += 1
        self.value += max(1.0 / self.n, _NEWEST) * (value - self.value)


class Expected:
    """Times by model and length of the answer. A lost update between threads does no harm."""

    def __init__(self) -> None:
        self._first: dict[str, _Mean] = {}
        self._tokens: dict[str, _Mean] = {}
        self._whole: dict[tuple[str, int], _Mean] = {}

    def began(self, model: str, seconds: float) -> None:
        """Count the time to the first piece of a stream."""
        self._first.setdefault(model, _Mean()).add(seconds)

    def answered(self, model: str, seconds: float, tokens: int) -> None:
        """Count the time of a whole answer of so many tokens."""
        self._tokens.setdefault(model, _Mean()).add(tokens)
        key = (model, bisect_right(_LENGTHS, tokens))
        self._whole.setdefault(key, _Mean()).add(seconds)

    def times(self, catalog: Catalog, most_tokens: int) -> dict[str, tuple[float, float]]:
        """Model -> seconds to the first piece, and to the end; NaN where nobody knows.

        `most_tokens` is the longest answer that the request allows, 0 for no limit.
        """
        nan = float("nan")
        found = {}
        for spec in catalog.models:
            first, tokens = self._first.get(spec.id), self._tokens.get(spec.id)
            whole = None
            if tokens is not None:
                length = min(tokens.value, most_tokens) if most_tokens else tokens.value
                whole = self._whole.get((spec.id, bisect_right(_LENGTHS, length)))
            said = (spec.ttft_s, spec.latency_s)
            found[spec.id] = (
                first.value if first is not None and first.n >= _ENOUGH else said[0] or nan,
                whole.value if whole is not None and whole.n >= _ENOUGH else said[1] or nan,
            )
        return found
