"""Small decision logs, written and read back as a service does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from hydra_core.decision_log.reading import read_log
from hydra_core.decision_log.records import OutcomeRecord
from hydra_core.decision_log.writer import LogWriter
from hydra_core.live.traffic import traffic_of
from tests.decision_log.test_log import record
from tests.routing.conftest import DIMENSIONS, make_catalog

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY = AT.date()
MODELS = ("cheap", "mid", "strong")


def decision(number, level=0.1, **changes):
    """A served decision by a catalog like `make_catalog()`; requirements all at `level`."""
    index = next((i for i, able in enumerate((0.2, 0.5, 0.9)) if level <= able), 2)
    values = {
        "at": AT + timedelta(seconds=number),
        "predictor": "f",
        "dimensions": DIMENSIONS,
        "requirements": (level,) * 4,
        "candidates": MODELS,
        "shortfalls": tuple(max(0.0, 4 * (level - able)) for able in (0.2, 0.5, 0.9)),
        "chosen": MODELS[index],
        "served": MODELS[index],
        "propensities": tuple(float(i == index) for i in range(3)),
        "input_tokens": 1000,
        "output_tokens": 1000,
        "cached_tokens": 0,
        "cost_usd": 1e-3 * 2 * (1, 3, 9)[index],
    }
    return record(number, **(values | changes))


def traffic(folder, decisions, qualities=None):
    """Traffic of a log folder with these decisions, and feedback by decision id.

    Feedback comes with the decision: at a fixed day it would fall out of "the last day" for ever.
    """
    log, made = LogWriter(folder), {}
    for one in decisions:
        log.add(one)
        made[one.decision_id] = one.at
    for decision_id, quality in (qualities or {}).items():
        log.add(OutcomeRecord(decision_id, made.get(decision_id, AT), quality))
    log.close()
    return traffic_of(read_log(folder))


def other_catalog(tau=0.1, **policy):
    """Like `make_catalog()`, with tau 0: more goes to dearer models."""
    base = make_catalog(tau=tau)
    return replace(base, name="second", policy=replace(base.policy, **policy))


def levels(n, seed=0):
    """(n,) requirement levels over all three models."""
    return np.random.default_rng(seed).uniform(0.0, 0.9, n).round(3)
