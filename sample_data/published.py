"""Figures of the paper's 5-model SWE-bench pool that the reconstruction must reproduce.

Tables `tab:main`, `tab:sig`(a), `tab:profiles_summary` and figure `fig:pareto`. Models are listed
in the paper's static cost order, cheapest first.
"""

from dataclasses import dataclass

import numpy as np

from hydra_core.base.types import Band, FloatArray

__all__ = [
    "BANDS",
    "CAPABILITIES",
    "COST_SAVINGS",
    "MODELS",
    "N_QUERIES",
    "OPERATING_POINTS",
    "ORACLE_RESOLVED",
    "PARETO",
    "RESOLVED",
    "SECONDARY_POINTS",
    "STATIC_ROWS",
    "STRONG",
    "OperatingPoint",
    "StaticRow",
    "compensated_weights",
]

MODELS = ("gpt-5.4-mini", "claude-haiku-4.5", "gpt-5.3-codex", "claude-sonnet-4.6", "gpt-5.4")
STRONG = MODELS.index("claude-sonnet-4.6")
N_QUERIES = 500
ORACLE_RESOLVED = 431
RESOLVED = (347, 347, 367, 371, 367)
#: CS against claude-sonnet-4.6; the first is printed to two decimals in fig:pareto.
COST_SAVINGS = (0.7858, 0.117, 0.573, 0.0, 0.257)

CAPABILITIES: FloatArray = np.array(
    [
        [0.43, 0.39, 0.33, 0.02],
        [0.29, 0.02, 0.00, 0.12],
        [0.62, 0.77, 0.67, 0.10],
        [0.72, 0.79, 0.69, 0.43],
        [0.65, 0.71, 0.63, 0.28],
    ]
)
BANDS = (Band(0.29, 0.72), Band(0.02, 0.79), Band(0.0, 0.69), Band(0.02, 0.43))


@dataclass(frozen=True, slots=True)
class StaticRow:
    """One always-this-model row; percentages as printed, None where the paper prints a dash."""

    resolved_pct: float
    wilson_pct: tuple[float, float]
    qr_pct: float
    cs_pct: float
    cs_interval_pct: tuple[float, float] | None
    misroute_pct: float
    mcnemar_p: float | None


STATIC_ROWS = (
    StaticRow(69.4, (65.2, 73.3), 80.5, 78.6, (74.3, 82.1), 0.0, 0.011),
    StaticRow(69.4, (65.2, 73.3), 80.5, 11.7, (-6.3, 26.5), 69.4, 0.008),
    StaticRow(73.4, (69.4, 77.1), 85.2, 57.3, (48.9, 64.1), 78.0, 0.724),
    StaticRow(74.2, (70.2, 77.8), 86.1, 0.0, None, 82.4, None),
    StaticRow(73.4, (69.4, 77.1), 85.2, 25.7, (11.3, 37.4), 85.0, 0.720),
)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A router row: resolved queries (QR x 431), CS and misroute as fractions of 1."""

    tau: float
    resolved: int
    cs: float
    misroute: float | None = None
    cs_interval_pct: tuple[float, float] | None = None
    mcnemar_p: float | None = None


OPERATING_POINTS = (
    OperatingPoint(0.01, 377, 0.1292, 0.810, (5.3, 22.3), 0.238),
    OperatingPoint(0.24, 370, 0.5410, 0.702, (44.8, 61.7), 1.000),
    OperatingPoint(0.64, 355, 0.7254, 0.198, (67.0, 77.0), 0.085),
)
SECONDARY_POINTS = (OperatingPoint(0.10, 375, 0.376), OperatingPoint(1.00, 347, 0.7849))
#: (CS, resolved) along the published frontier; resolved = QR x 431 comes out whole.
PARETO = (
    (0.1292, 377),
    (0.3942, 376),
    (0.4353, 373),
    (0.5379, 371),
    (0.5410, 370),
    (0.6062, 366),
    (0.6361, 363),
    (0.6738, 362),
    (0.6897, 358),
    (0.7254, 355),
    (0.7593, 352),
    (0.7814, 349),
    (0.7849, 347),
)


def compensated_weights() -> FloatArray:
    """(4,) w~ of Eq. 4 for stored weights of 1: 1.238, .691, .772, 1.299."""
    inverse = 1.0 / np.array([band.width for band in BANDS])
    return np.asarray(len(BANDS) * inverse / inverse.sum(), dtype=np.float64)
