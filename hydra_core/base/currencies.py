"""Signs and codes of currencies, as people write them beside an amount."""

import re
from collections.abc import Mapping
from typing import Final

_CODES: Final = (
    *("USD", "EUR", "GBP", "JPY", "CNY", "CHF", "INR", "CAD", "AUD", "NZD", "SEK", "NOK", "DKK"),
    *("PLN", "CZK", "HUF", "BRL", "MXN", "KRW", "SGD", "HKD", "TWD", "THB", "ZAR", "ILS", "RUB"),
    *("IDR", "VND", "AED", "SAR"),
)
#: Sign or code in lower case -> the currency's code.
CURRENCIES: Final[Mapping[str, str]] = {
    **{code.lower(): code for code in _CODES},
    "$": "USD",
    "us$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
    "rmb": "CNY",
    "c$": "CAD",
    "ca$": "CAD",
    "a$": "AUD",
    "au$": "AUD",
    "nz$": "NZD",
    "hk$": "HKD",
    "r$": "BRL",
    "₩": "KRW",
    "₽": "RUB",
    "₪": "ILS",
    "zł": "PLN",
    "元": "CNY",
}
#: Any of them that is not USD, where `_` parts words as a space does; kr is one of several.
FOREIGN: Final = re.compile(
    "|".join(
        rf"(?<![^\W_]){re.escape(sign)}(?![^\W_])"
        if sign[-1].isalpha()
        else rf"(?<![^\W_]){re.escape(sign)}"
        if sign[0].isalpha()
        else re.escape(sign)
        for sign, code in sorted(
            {**CURRENCIES, "kr": "SEK", "s$": "SGD"}.items(), key=lambda one: -len(one[0])
        )
        if code != "USD"
    ),
    re.IGNORECASE,
)
