"""What the console remembers: the policy being tuned, its link, the pinned policy.

One plain record per session is the truth; widgets are seeded from it and write back through
callbacks, so it survives page changes whichever widgets are on screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import streamlit as st

from hydra_core.evaluation.replay.pricing import Prices
from hydra_core.types import Catalog
from hydra_core.views.frontier import XAxis, YAxis

__all__ = [
    "Pin",
    "Remembered",
    "Tuning",
    "follow_link",
    "from_link",
    "get",
    "number",
    "numbers",
    "put",
    "to_link",
    "write_link",
]

_LINK = "tuning.link"
_TOUCHED = "tuning.touched"


_Record = TypeVar("_Record")


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
            st.session_state[self.key] = self.fresh(st.query_params.to_dict())
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
    """A policy to compare with, on the same eval set and catalog."""

    tau: float
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The policy under study and how it is looked at; empty fields mean the default.

    Attributes:
        evalset: Key of the eval set.
        catalog: Key of the catalog.
        tau: None means the catalog's own.
        weights: Stored weights w_k; None means the catalog's own.
        baseline: Model that savings are measured against; empty means the costliest.
        costs: At the catalog's prices of today, or as they were recorded.
    """

    evalset: str = ""
    catalog: str = ""
    tau: float | None = None
    weights: tuple[float, ...] | None = None
    baseline: str = ""
    x: XAxis = XAxis.COST
    y: YAxis = YAxis.QR
    costs: Prices = Prices.TODAY
    pin: Pin | None = None

    def tau_for(self, catalog: Catalog) -> float:
        """The tau in force."""
        return catalog.policy.tau if self.tau is None else self.tau

    def weights_for(self, catalog: Catalog) -> tuple[float, ...]:
        """The stored weights in force; those of another dimension count are not used."""
        if self.weights is None or len(self.weights) != len(catalog.dimensions):
            return catalog.policy.weights
        return self.weights


def get() -> Tuning:
    """The session's tuning."""
    return _TUNING.get()


def put(**changes: object) -> None:
    """Change some fields; the address follows with `write_link`."""
    _TUNING.put(**changes)
    st.session_state[_TOUCHED] = True


def follow_link() -> None:
    """Take the tuning from the address where the operator went back, forward or to a link.

    The address that `write_link` wrote last says nothing new, and neither does any address when
    a widget has just changed the tuning: the browser may not have caught up with it yet.
    """
    params = st.query_params.to_dict()
    touched = st.session_state.pop(_TOUCHED, False)
    if params and not touched and params != st.session_state.get(_LINK, params):
        _TUNING.set(from_link(params))


def write_link() -> None:
    """Put the tuning into the address, so that it can be shared and taken back."""
    link = to_link(get())
    st.session_state[_LINK] = link
    st.session_state.pop(_TOUCHED, None)
    if st.query_params.to_dict() != link:
        st.query_params.from_dict(link)


def from_link(params: Mapping[str, str]) -> Tuning:
    """Read a link's parameters; what cannot be read is ignored, never an error."""
    pin_tau = number(params.get("pin", ""))
    pin_weights = numbers(params.get("pin_w", ""))
    return Tuning(
        evalset=params.get("set", ""),
        catalog=params.get("catalog", ""),
        tau=number(params.get("tau", "")),
        weights=numbers(params.get("w", "")),
        baseline=params.get("baseline", ""),
        x=XAxis.SAVINGS if params.get("x") == XAxis.SAVINGS else XAxis.COST,
        y=YAxis.RESOLVED if params.get("y") == YAxis.RESOLVED else YAxis.QR,
        costs=Prices.RECORDED if params.get("costs") == Prices.RECORDED else Prices.TODAY,
        pin=Pin(pin_tau, pin_weights) if pin_tau is not None and pin_weights else None,
    )


_TUNING = Remembered("tuning", from_link)


def to_link(tuning: Tuning) -> dict[str, str]:
    """The parameters that restore a tuning; `from_link` reads them back."""
    link = {"set": tuning.evalset, "catalog": tuning.catalog, "baseline": tuning.baseline}
    if tuning.tau is not None:
        link["tau"] = repr(tuning.tau)
    if tuning.weights is not None:
        link["w"] = ",".join(map(repr, tuning.weights))
    if tuning.x is not XAxis.COST:
        link["x"] = tuning.x.value
    if tuning.y is not YAxis.QR:
        link["y"] = tuning.y.value
    if tuning.costs is not Prices.TODAY:
        link["costs"] = tuning.costs.value
    if tuning.pin is not None:
        link |= {"pin": repr(tuning.pin.tau), "pin_w": ",".join(map(repr, tuning.pin.weights))}
    return {name: value for name, value in link.items() if value}


def number(text: str) -> float | None:
    """A number of a link in [0, 100], None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value <= 100.0 else None


def numbers(text: str) -> tuple[float, ...] | None:
    """Comma-separated numbers > 0 of a link, None when one of them is not."""
    values = tuple(number(part) for part in text.split(",")) if text else ()
    known = tuple(value for value in values if value is not None and value > 0.0)
    return known if known and len(known) == len(values) else None
