"""Tune: what routing would do to quality and cost on one eval set, for every setting of a rule."""

from __future__ import annotations

from hydra_core.console import selectors, state
from hydra_core.console.tune.by_hand import tune

state.follow_link()
selectors.page("Tune", tune)
