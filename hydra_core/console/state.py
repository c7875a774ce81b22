"""What the console remembers: the policy being tuned, its link, the pinned policy.

One plain record per session is the truth; widgets are seeded from it and write back through
callbacks, so it survives page changes whichever widgets are on screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import streamlit as st

from hydra_core.base.types import Catalog, Policy, Rule
from hydra_core.console.frame import read_address, write_address
from hydra_core.console.view_frontier import XAxis, YAxis
from hydra_core.replay.metrics import costliest
from hydra_core.replay.operating_point import Aim, AimKind
from hydra_core.replay.pricing import Prices
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.sweep import Sweep

_LINK = "tuning.link"
_TOUCHED = "tuning.touched"
#: The address that another part or page wrote last.
OTHER_LINK = "data.link"
#: The most that a number of a link may be: weights, tau and V of a catalog have no limit.
_MOST = 1e9


_Record = TypeVar("_Record")
_Made = TypeVar("_Made")


def bound(key: str, value: object, write: Callable[[Any], object]) -> dict[str, Any]:
    """Key and callback of a widget that shows a value and hands on what it is changed to."""
    st.session_state[key] = value
    return {"key": key, "on_change": lambda: write(st.session_state[key])}


def once(place: str, key: object, make: Callable[[], _Made]) -> _Made:
    """What was made for a key, kept in the session until another key is asked for."""
    if st.session_state.get(place, (None,))[0] != key:
        st.session_state[place] = (key, make())
    made: _Made = st.session_state[place][1]
    return made


@dataclass(frozen=True, slots=True)
class Remembered(Generic[_Record]):
    """One frozen record that a page keeps through a session.

    Attributes:
        fresh: What a new session begins with, from the link it was opened with.
    """

    key: str
    fresh: Callable[[Mapping[str, str]], _Record]

    def get(self) -> _Record:
        """The session's record."""
        if self.key not in st.session_state:
            st.session_state[self.key] = self.fresh(read_address())
        record: _Record = st.session_state[self.key]
        return record

    def set(self, record: _Record) -> None:
        """Keep another record."""
        st.session_state[self.key] = record

    def put(self, **changes: object) -> None:
        """Change some fields."""
        record: Any = self.get()
        self.set(replace(record, **changes))


@dataclass(frozen=True, slots=True)
class Pin:
    """A policy to compare with, on the same eval set and catalog.

    Attributes:
        knob: tau, or V in USD under the value rule.
        weights: (K,) stored weights; of no effect under the value rule.
    """

    knob: float
    weights: tuple[float, ...]
    rule: Rule = Rule.SHORTFALL


@dataclass(frozen=True, slots=True)
class Tuning:
    """The policy under study and how it is looked at; empty fields mean the default.

    Attributes:
        evalset, catalog: Their keys.
        tau: None means the catalog's own.
        weights: Stored weights w_k; None means the catalog's own.
        rule: None means the catalog's own.
        value_usd: V of the value rule, USD; None means the catalog's own, or the curve's middle.
        baseline: Model that savings are measured against; empty means the costliest.
        costs: At the catalog's prices of today, or as they were recorded.
        aim: What Find was asked for last; the knob serves it until it is turned.
        view: Which details are looked at; empty means the first.
    """

    evalset: str = ""
    catalog: str = ""
    tau: float | None = None
    weights: tuple[float, ...] | None = None
    rule: Rule | None = None
    value_usd: float | None = None
    baseline: str = ""
    x: XAxis = XAxis.COST
    y: YAxis = YAxis.QR
    costs: Prices = Prices.TODAY
    pin: Pin | None = None
    aim: Aim | None = None
    view: str = ""

    def weights_for(self, catalog: Catalog) -> tuple[float, ...]:
        """The stored weights in force; those of another dimension count are not used."""
        if self.weights is None or len(self.weights) != len(catalog.dimensions):
            return catalog.policy.weights
        return self.weights

    def rule_for(self, catalog: Catalog) -> Rule:
        """The rule in force; with nothing to predict with, the shortfall rule."""
        if catalog.success_source is None:
            return Rule.SHORTFALL
        return self.rule or catalog.policy.rule

    def knob_for(self, sweep: Sweep) -> float:
        """The setting in force: tau, or V under the value rule."""
        given = self.value_usd if sweep.rule is Rule.VALUE else self.tau
        return sweep.own_knob if given is None else given

    def baseline_on(self, data: ReplayData) -> str:
        """The model that savings are measured against: the costliest where none is named."""
        return self.baseline if self.baseline in data.pool.ids else costliest(data)

    def policy_for(self, catalog: Catalog) -> Policy:
        """The catalog's policy as it is tuned here; the value rule only where V is known."""
        policy = catalog.policy
        rule = self.rule_for(catalog)
        value_usd = policy.value_usd if self.value_usd is None else self.value_usd
        if rule is Rule.VALUE and value_usd is not None:
            return replace(policy, rule=rule, value_usd=value_usd)
        tau = policy.tau if self.tau is None else self.tau
        weights = self.weights_for(catalog)
        return replace(policy, rule=Rule.SHORTFALL, tau=tau, weights=weights)


def get() -> Tuning:
    """The session's tuning."""
    return _TUNING.get()


def put(**changes: object) -> None:
    """Change some fields of the tuning; the address follows with `write_link`."""
    _TUNING.put(**changes)
    st.session_state[_TOUCHED] = True


def turn(rule: Rule, knob: float | None) -> None:
    """Set the knob of a rule, tau or V in USD, by hand: no aim chose it. None: as the catalog."""
    if rule is Rule.VALUE:
        put(value_usd=knob, aim=None)
    else:
        put(tau=knob, aim=None)


def follow_link() -> None:
    """Take the tuning from the address where the operator went back, forward or to a link.

    The addresses that `write_link` and another part wrote last say nothing new. Neither does any
    when a widget has just changed the tuning: the browser may not have caught up with it yet.
    """
    params = read_address()
    touched = st.session_state.pop(_TOUCHED, False)
    written = st.session_state.get(_LINK, params), st.session_state.get(OTHER_LINK)
    if params and not touched and params not in written:
        _TUNING.set(from_link(params))


def write_link() -> None:
    """Put the tuning into the address, so that it can be shared and taken back."""
    link = to_link(get())
    st.session_state[_LINK] = link
    st.session_state.pop(_TOUCHED, None)
    write_address(link)


def from_link(params: Mapping[str, str]) -> Tuning:
    """Read a link's parameters; what cannot be read is ignored, never an error."""
    return Tuning(
        evalset=params.get("set", ""),
        catalog=params.get("catalog", ""),
        tau=number(params.get("tau", "")),
        weights=numbers(params.get("w", "")),
        rule=rule_named(params.get("rule", "")),
        value_usd=dollars(params.get("v", "")),
        baseline=params.get("baseline", ""),
        x=XAxis.SAVINGS if params.get("x") == XAxis.SAVINGS else XAxis.COST,
        y=YAxis.RESOLVED if params.get("y") == YAxis.RESOLVED else YAxis.QR,
        costs=Prices.RECORDED if params.get("costs") == Prices.RECORDED else Prices.TODAY,
        pin=_pin(params),
        aim=_aim(params.get("aim", "")),
        view=params.get("view", ""),
    )


def _pin(params: Mapping[str, str]) -> Pin | None:
    rule = rule_named(params.get("pin_rule", "")) or Rule.SHORTFALL
    text, weights = params.get("pin", ""), numbers(params.get("pin_w", ""))
    knob = dollars(text) if rule is Rule.VALUE else number(text)
    return None if knob is None or not weights else Pin(knob, weights, rule)


def _aim(text: str) -> Aim | None:
    kind, _, value = text.partition(":")
    if kind not in set(AimKind):
        return None
    at = number(value)
    return None if at is None else Aim(AimKind(kind), at)


_TUNING = Remembered("tuning", from_link)


def to_link(tuning: Tuning) -> dict[str, str]:
    """The parameters that restore a tuning; `from_link` reads them back."""
    aim, pin = tuning.aim, tuning.pin
    link = {
        "set": tuning.evalset,
        "catalog": tuning.catalog,
        "baseline": tuning.baseline,
        "view": tuning.view,
        "aim": aim and f"{aim.kind}:{aim.value!r}",
        "tau": None if tuning.tau is None else repr(tuning.tau),
        "w": tuning.weights and ",".join(map(repr, tuning.weights)),
        "rule": tuning.rule and tuning.rule.value,
        "v": None if tuning.value_usd is None else repr(tuning.value_usd),
        "x": "" if tuning.x is XAxis.COST else tuning.x.value,
        "y": "" if tuning.y is YAxis.QR else tuning.y.value,
        "costs": "" if tuning.costs is Prices.TODAY else tuning.costs.value,
        "pin": pin and repr(pin.knob),
        "pin_w": pin and ",".join(map(repr, pin.weights)),
        "pin_rule": pin and pin.rule is Rule.VALUE and pin.rule.value,
    }
    return {name: str(value) for name, value in link.items() if value}


def number(text: str) -> float | None:
    """A number >= 0 of a link; None for anything else."""
    with suppress(ValueError):
        if 0.0 <= float(text) <= _MOST:
            return float(text)
    return None


def setting(text: str) -> float | None:
    """tau or V of a link; None for anything else."""
    return number(text) if number(text) is not None else dollars(text)


def dollars(text: str) -> float | None:
    """An amount of a link in USD, > 0; None for anything else."""
    with suppress(ValueError):
        if 0.0 < float(text) <= _MOST:
            return float(text)
    return None


def rule_named(text: str) -> Rule | None:
    """A rule of a link; None for anything else."""
    return Rule(text) if text in set(Rule) else None


def numbers(text: str) -> tuple[float, ...] | None:
    """Comma-separated numbers > 0 of a link, None when one of them is not."""
    values = tuple(number(part) for part in text.split(",")) if text else ()
    known = tuple(value for value in values if value is not None and value > 0.0)
    return known if known and len(known) == len(values) else None


def price_key(field: str, model: str, now: float) -> str:
    """Where a repricing keeps a model's other price; it begins anew once another one holds now."""
    return f"catalog.event.{field}.{model}.{now:.10g}"
