"""Cached flights: settings, tables and reports, keyed by the digest of their files."""

from __future__ import annotations

import streamlit as st

from hydra_core.evaluation.flight.analysis import FlightReport, analyse, looks
from hydra_core.evaluation.flight.effects import Effect, Reading
from hydra_core.evaluation.flight.folders import FlightFolder, list_flights, load
from hydra_core.evaluation.flight.settings import Flight, Metric
from hydra_core.evaluation.flight.table import Rows
from hydra_core.shipped import SAMPLE_DATA
from hydra_core.ui.demo import session

__all__ = ["flights", "opened", "path", "report"]


def flights() -> tuple[FlightFolder, ...]:
    """The operator's flights, then the sample's."""
    return list_flights(session.folder() / "flights", SAMPLE_DATA)


@st.cache_resource(max_entries=4, show_spinner="Reading the table")
def opened(folder: FlightFolder) -> tuple[Flight, Rows]:
    """A flight's settings and table."""
    return load(folder)


@st.cache_resource(max_entries=16, show_spinner="Comparing the arms")
def report(folder: FlightFolder, reading: Reading, adjust: bool) -> FlightReport:
    """A flight's figures."""
    flight, rows = opened(folder)
    return analyse(rows, flight, reading=reading, adjust=adjust)


@st.cache_resource(max_entries=64, show_spinner="Looking at every day")
def path(folder: FlightFolder, metric: Metric, arm: str, reading: Reading, adjust: bool) -> Effect:
    """One metric's effect after every day."""
    flight, rows = opened(folder)
    return looks(rows, flight, metric, arm, reading=reading, adjust=adjust)
