"""Facts that once had several homes have one each: a second is caught here."""

import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.tokens import most_text_tokens, text_tokens
from hydra_core.base.types import Band
from hydra_core.catalog.prices.quotes import price_number
from hydra_core.predictor.score_bands import score_bands

ROOT = Path(__file__).resolve().parents[2] / "hydra_core"
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(ROOT.rglob("*.py"))
}
#: A pattern of the code that does it -> the only files that may hold it.
HOMES = {
    r"(?i)bytes_per_token(: Final)? = ": {"base/tokens.py"},
    r"percentile\([^)]*(5(\.0)?, 95|_PERCENTILES)|quantile\([^)]*0\.05, 0\.95\]": {
        "predictor/score_bands.py"
    },
    r"str\(value\)\.strip\(\)\n.*\n.*return Decimal": {"catalog/prices/quotes.py"},
    r"class CancelledError": {"base/errors.py"},
    r"csv\.reader\(": {"base/reading/csv_rows.py"},
    r"^RESOLVED_AT": {"evalsets/evalset.py"},
    r"^LEVEL\b": {"base/intervals.py"},
}


@pytest.mark.parametrize("pattern", HOMES)
def test_a_fact_has_one_home(pattern):
    found = {name for name, text in SOURCES.items() if re.search(pattern, text, re.M)}
    assert found == HOMES[pattern]


def test_no_function_is_called_bands_of_and_band_functions_are_named_once():
    every = "".join(SOURCES.values())
    assert re.findall(r"^ *def (bands_of|score_bands)\(", every, re.M) == ["score_bands"]


def test_bytes_become_tokens():
    assert text_tokens("four") == 1
    assert most_text_tokens("four") == 2
    assert most_text_tokens("") == 1


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("0.31", Decimal("0.31")), (" 3 ", Decimal(3)), (0.1, Decimal("0.1")), (True, None),
     ("", None), ("nan", None), ("inf", None), (None, None), ("three", None)],
)  # fmt: skip
def test_a_price_is_a_plain_finite_number(given, wanted):
    assert price_number(given) == wanted


def test_a_score_band_is_the_middle_nine_tenths():
    assert score_bands(np.linspace(0, 1, 101)[:, None]) == (Band(0.05, 0.95),)
    assert score_bands(np.full((10, 1), 0.995)) == (Band(0.99, 1.0),)
