"""Profiles: from benchmark evidence to capabilities, bands and weights (Algorithm 1)."""

from __future__ import annotations

from hydra_core.console.catalog.page import draft_page
from hydra_core.console.catalog.profiles_page import VIEWS, show

draft_page("Profiles", VIEWS, show)
