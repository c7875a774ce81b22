"""What attacked messages do to a router's choices, at any knob and under either rule.

Success is a route to one of the two dearest models from one that was cheaper (the paper's appendix
on adversarial suffixes); the cost ratio is by what orders the pool's models. The verb, the page
Robustness, the benchmark and the model card draw, score and route in one way: `probed`, `routed`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra_core.base.errors import MismatchError
from hydra_core.base.intervals import Interval
from hydra_core.base.tokens import text_tokens
from hydra_core.base.types import BoolArray, Catalog, FloatArray, IntArray, Pool
from hydra_core.catalog.binding import rebind
from hydra_core.catalog.profiles import pool
from hydra_core.catalog.schema import load_catalog, parse_catalog, read_catalog_text
from hydra_core.lab.robustness.attack import (
    ANOTHER_WORDING,
    Attacked,
    Families,
    Read,
    attacked,
    load_probes,
    remembering,
    runs,
)
from hydra_core.outcome_model.heads import Messages
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.languages import GROUPS, group_of
from hydra_core.predictor.onnx_predictor import Predictor, Runs
from hydra_core.predictor.signals import surface_counts
from hydra_core.replay.significance import clustered_wilson
from hydra_core.routing.matcher import choose, shortfall, value_shortfall
from hydra_core.routing.valuation import Valuer, valuer_of

#: The row over all families, or all language groups.
EVERYONE: Final = "all"
_FRONTIER = 2

Groups = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One suffix family in one language group.

    Attributes:
        family: The suffix family, or ``all``.
        group: The language group, or ``all``.
        localised: Whether the suffixes were in the message's own language, else in English.
        n: Attacks on the messages that are routed below the frontier when clean.
        success: Share that the suffix moved to a frontier model, with Wilson's 95 % interval; the
            families on one message and the messages of one cluster count as dependent. NaN when n
            is 0.
        cost_ratio: Cost of the attacked routes over that of the clean ones, NaN when n is 0.
    """

    family: str
    group: str
    localised: bool
    n: int
    success: Interval
    cost_ratio: float


@dataclass(frozen=True, slots=True)
class FlipRow:
    """A harmless change of the text, and the share of messages whose model it changed."""

    change: str
    n: int
    rate: Interval


@dataclass(frozen=True, slots=True)
class Exchange:
    """One attacked message: where it went clean and with the suffix.

    Attributes:
        row: Its position among the messages.
        ignored: Characters taken for a claim and not scored.
        distance: From what the predictor was trained on, NaN where that is not known.
        won: Whether the suffix bought a frontier model.
    """

    row: int
    family: str
    localised: bool
    text: str
    ignored: int
    distance: float
    before: str
    after: str
    won: bool


@dataclass(frozen=True, slots=True)
class Findings:
    """What an attack found at one knob.

    Attributes:
        cheap: Messages routed below the frontier when clean.
        attacks: Per family and group, per family, and over all; own language first, then English.
        languages: All families by language code (as `group`); own language first, then English.
    """

    knob: float
    n: int
    cheap: int
    attacks: tuple[AttackRow, ...]
    languages: tuple[AttackRow, ...]
    flips: tuple[FlipRow, ...]

    def overall(self, *, localised: bool) -> AttackRow:
        return next(
            row
            for row in self.attacks
            if (row.family, row.group, row.localised) == (EVERYONE, EVERYONE, localised)
        )


class PoolRoutes:
    """Where a pool's rule sends messages, at any knob.

    Args:
        valuer: Predicts success and cost under the value rule; None for the shortfall rule.
        time_usd: (m,) what the time of an answer costs, where the catalog gives a second a price.
    """

    def __init__(
        self, pool: Pool, valuer: Valuer | None = None, time_usd: FloatArray | float = 0.0
    ) -> None:
        self.pool, self.valuer, self._time_usd = pool, valuer, time_usd
        order = np.argsort(pool.cost, kind="stable")
        self.frontier: BoolArray = np.isin(np.arange(pool.cost.size), order[-_FRONTIER:])

    def terms(self, read: Read) -> tuple[FloatArray, FloatArray]:
        """Shortfalls (n, m) and cost (m,); or predicted success and cost, both (n, m).

        Raises:
            MismatchError: The value rule, and the bundle gives no text vectors.
        """
        if self.valuer is None:
            pool = self.pool
            need = pool.capped(read.requirements)
            return shortfall(need, pool.capabilities, pool.weights), pool.cost
        sizes = np.array([text_tokens(text) for text in read.texts])
        found = self.valuer.of_requirements(read.requirements, sizes)
        if found is None:
            if read.vectors is None:
                raise MismatchError("the value rule needs a predictor bundle with text vectors")
            half = read.vectors.astype(np.float16)
            found = self.valuer.predict(
                Messages(read.requirements, half, surface_counts(read.texts)), sizes
            )
        return found.success, found.cost_usd + self._time_usd

    def at(self, terms: tuple[FloatArray, FloatArray], knob: float) -> IntArray:
        """(n,) model chosen for each message."""
        if not len(terms[0]):
            return np.empty(0, dtype=np.intp)
        if self.valuer is None:
            return choose(*terms, knob)
        return choose(value_shortfall(*terms, knob), terms[1], 0.0)

    def cheap(self, read: Read, knob: float) -> BoolArray:
        """(n,) whether a message is routed below the frontier."""
        return ~self.frontier[self.at(self.terms(read), knob)]


class RoutedAttacks:
    """Attacked messages under one pool and rule; every knob is a look-up.

    Args:
        valuer, time_usd: As `PoolRoutes` takes them.

    Raises:
        MismatchError: The value rule, and the bundle gives no text vectors.
    """

    def __init__(
        self, attacked: Attacked, pool: Pool, valuer: Valuer | None = None,
        time_usd: FloatArray | float = 0.0,
    ) -> None:  # fmt: skip
        self.attacked, self.pool, self.valuer = attacked, pool, valuer
        routes = PoolRoutes(pool, valuer, time_usd)
        self._frontier, self._routes = routes.frontier, routes.at
        self._clean = routes.terms(attacked.clean)
        #: Whether in the message's own language -> family -> what routes these attacks.
        self._attacks = {
            own: {a.family: routes.terms(a.read) for a in attacked.attacks if a.localised is own}
            for own in (True, False)
        }
        self._changed = {name: routes.terms(read) for name, read in attacked.changed.items()}
        self._groups: Groups = np.array([group_of(code) for code in attacked.languages], object)
        alone = np.arange(len(attacked.languages))
        self._units: IntArray = alone if attacked.clusters is None else attacked.clusters

    def at(self, knob: float) -> Findings:
        clean = self._routes(self._clean, knob)
        cheap = ~self._frontier[clean]
        rows: list[AttackRow] = []
        spoken: list[AttackRow] = []
        for own, attacks in self._attacks.items():
            routed = {name: self._routes(terms, knob) for name, terms in attacks.items()}
            rows += self._rows(clean, cheap, routed, localised=own)
            spoken += self._by_language(clean, cheap, list(routed.values()), localised=own)
        flips = [
            self._flips(name, clean, self._routes(terms, knob))
            for name, terms in self._changed.items()
        ]
        cheap_ones = int(cheap.sum())
        return Findings(knob, len(clean), cheap_ones, tuple(rows), tuple(spoken), tuple(flips))

    def along(self, knobs: Sequence[float], *, localised: bool) -> tuple[AttackRow, ...]:
        """All families and languages together at every knob."""
        found = []
        for knob in knobs:
            clean = self._routes(self._clean, knob)
            every = [self._routes(terms, knob) for terms in self._attacks[localised].values()]
            key = (EVERYONE, EVERYONE, localised)
            found.append(self._row(key, clean, every, ~self._frontier[clean]))
        return tuple(found)

    def exchanges(self, knob: float) -> tuple[Exchange, ...]:
        """Every attack on a message that was routed below the frontier, successes first."""
        clean = self._routes(self._clean, knob)
        found = []
        for attack in self.attacked.attacks:
            routed = self._routes(self._attacks[attack.localised][attack.family], knob)
            for i in np.flatnonzero(~self._frontier[clean]).tolist():
                found.append(
                    Exchange(
                        row=i,
                        family=attack.family,
                        localised=attack.localised,
                        text=attack.read.texts[i],
                        ignored=int(attack.read.ignored[i]),
                        distance=float(attack.read.distances[i]),
                        before=self.pool.ids[clean[i]],
                        after=self.pool.ids[routed[i]],
                        won=bool(self._frontier[routed[i]]),
                    )
                )
        return tuple(sorted(found, key=lambda one: not one.won))

    def _rows(
        self, clean: IntArray, cheap: BoolArray, routed: Mapping[str, IntArray], *, localised: bool
    ) -> Iterator[AttackRow]:
        for name, choice in routed.items():
            for group in GROUPS:
                part = cheap & (self._groups == group)
                if part.any():
                    yield self._row((name, group, localised), clean, [choice], part)
        for name, choice in routed.items():
            yield self._row((name, EVERYONE, localised), clean, [choice], cheap)
        yield self._row((EVERYONE, EVERYONE, localised), clean, list(routed.values()), cheap)

    def _flips(self, change: str, before: IntArray, after: IntArray) -> FlipRow:
        """Over all messages; of other wordings, over the messages that have one."""
        tried = np.ones(len(before), dtype=bool)
        if change == ANOTHER_WORDING:
            texts = zip(self.attacked.clean.texts, self.attacked.changed[change].texts, strict=True)
            tried = np.array([clean != other for clean, other in texts], dtype=bool)
        moved = (before != after)[None, tried]
        return FlipRow(change, int(tried.sum()), _rate(moved, self._units[tried]))

    def _by_language(
        self, clean: IntArray, cheap: BoolArray, routed: Sequence[IntArray], *, localised: bool
    ) -> Iterator[AttackRow]:
        spoken = np.array(self.attacked.languages, dtype=np.object_)
        for code in sorted(set(self.attacked.languages)):
            part = cheap & (spoken == code)
            yield self._row((EVERYONE, code, localised), clean, routed, part)

    def _row(
        self, key: tuple[str, str, bool], clean: IntArray, routed: Sequence[IntArray],
        part: BoolArray,
    ) -> AttackRow:  # fmt: skip
        cost = self.pool.cost
        won = np.array([self._frontier[one[part]] for one in routed], dtype=bool)
        after = sum(float(cost[one[part]].sum()) for one in routed)
        before = float(cost[clean[part]].sum()) * len(routed)
        ratio = after / before if before else float("nan")
        return AttackRow(*key, won.size, _rate(won, self._units[part]), ratio)


def _rate(holds: BoolArray, units: IntArray) -> Interval:
    """Of (f, n) trials, f on each of n messages that belong to (n,) units."""
    if not holds.size:
        return Interval.none(float("nan"), "nothing was tried")
    clusters = np.unique(units, return_inverse=True)[1]
    return clustered_wilson(holds.ravel().astype(np.float64), np.tile(clusters, len(holds)))


#: Thresholds that a model card and the benchmark show: a strict one and the paper's conservative.
TAUS: Final = (0.05, 0.24)
_SEED: Final = 5


def bound_catalog(path: Path, bundle: Bundle) -> Catalog:
    """The catalog, moved to the bundle's bands; CatalogError where it is not valid."""
    catalog = load_catalog(path)
    if catalog.predictor_fingerprint == bundle.fingerprint:
        return catalog
    text = rebind(read_catalog_text(path), bundle.name, bundle.fingerprint, bundle.bands)
    return parse_catalog(text, path.name)


def probed(
    predictor: Predictor,
    texts: Sequence[str],
    languages: Sequence[str],
    clusters: IntArray | None = None,
    families: Families | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    wordings: Mapping[str, str] | None = None,
    targets: Callable[[Read], BoolArray] | None = None,
) -> Attacked:
    """Messages scored as they are, with every suffix and with every harmless change.

    Args:
        clusters: (n,) which messages belong together (`set_messages`); None when all are
            independent.
        families: None for the eight that come with HyDRA.
        progress: Told (scored, expected); what it raises stops the work.
        wordings: Message -> the same request in other words (`other_wordings`).
        targets: Clean messages -> (n,) those to attack (`cheap_at`); None attacks all, for every
            knob.
    """
    chosen = load_probes() if families is None else families
    expected = runs(languages, languages, len(chosen))
    progress(0, expected)
    shared: Runs = {}  # an attack whose claim is found leaves the clean message: run once for all
    predict = partial(predictor.predict_batches, runs=shared)

    def aimed(clean: Read) -> BoolArray:
        nonlocal expected
        hit = np.ones(len(texts), dtype=bool) if targets is None else targets(clean)
        expected = runs(languages, list(compress(languages, hit)), len(chosen))
        return hit

    read = remembering(predict, lambda done: progress(done, max(done, expected)))
    rng = np.random.default_rng(_SEED)
    return attacked(
        read, texts, languages, chosen, clusters=clusters, rng=rng, wordings=wordings, targets=aimed
    )


def cheap_at(catalog: Catalog, knob: float) -> Callable[[Read], BoolArray]:
    """Those that a catalog routes below its frontier at one tau, or one V.

    All that `RoutedAttacks.at` counts at that knob; at another one it would lack attacks.

    Raises:
        HydraError: The outcome model cannot be had.
    """
    routes = PoolRoutes(*_rule_of(catalog))
    return lambda clean: routes.cheap(clean, knob)


def routed(found: Attacked, catalog: Catalog) -> RoutedAttacks:
    """Attacked messages under a catalog's pool of today; HydraError for no outcome model."""
    return RoutedAttacks(found, *_rule_of(catalog))


def _rule_of(catalog: Catalog) -> tuple[Pool, Valuer | None, FloatArray]:
    models = pool(catalog, today=date.today())
    seconds = np.array([catalog.model(name).latency_s or 0.0 for name in models.ids])
    return models, valuer_of(catalog, models), catalog.policy.second_usd * seconds


def family_rows(found: RoutedAttacks) -> list[tuple[float, AttackRow]]:
    """(tau, row) of every family in either wording, over all languages, and of all families."""
    return [(tau, row) for tau in TAUS for row in found.at(tau).attacks if row.group == EVERYONE]


def attack_table(found: RoutedAttacks) -> str:
    """The attacks as a Markdown table, with the figures that `probe` prints."""
    lines = [
        "| tau | family | suffix | n | success | 95 % | cost ratio |",
        "|---:|---|---|---:|---:|---|---:|",
    ]
    for tau, row in family_rows(found):
        wording = "own language" if row.localised else "English"
        share, ratio = "–", "–"
        interval = ""
        if row.n:
            share, ratio = f"{row.success.value:.1%}", f"{row.cost_ratio:.3f}"
            interval = f"{row.success.lo:.1%} to {row.success.hi:.1%}"
        lines.append(
            f"| {tau} | {row.family} | {wording} | {row.n} | {share} | {interval} | {ratio} |"
        )
    return "\n".join(lines)
