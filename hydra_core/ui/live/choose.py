"""What the Live page looks at: a decision log, a time, and the catalog whose prices count."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from hydra_core.evaluation.live.canary import CANARY
from hydra_core.evaluation.live.traffic import Traffic
from hydra_core.types import Catalog
from hydra_core.ui import cache, cache_live, widgets
from hydra_core.ui.cache import CatalogEntry
from hydra_core.ui.cache_live import LogKey

__all__ = ["Looked", "catalog_in_use", "choose_log", "looked", "teach"]

_WINDOWS = {"Last hour": 3600, "Last day": 86_400, "Last 7 days": 7 * 86_400, "All": 0}
_HOW = """\
Live reads the decision log that `serve` writes. Start it beside this console, in the same folder:

```
hydra-router serve --catalog pool.yaml --upstreams upstreams.yaml --log log/
```

Without `--upstreams` it only decides, which already shows the mix. Another folder: set `HYDRA_LOG`
when the console starts."""


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What is looked at.

    Attributes:
        catalog: Prices, bands and order of the models.
    """

    key: LogKey
    traffic: Traffic
    catalog: Catalog


def choose_log() -> tuple[Path, int] | None:
    """Draw the selectors of log and time; None where there is no log."""
    folders = {str(path): path for path in cache_live.folders()}
    if not folders:
        return None
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="bottom"):
        name = st.selectbox(
            "Decision log", list(folders), key="live.log", width=260, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        window = st.selectbox(
            "Time", list(_WINDOWS), key="live.time", width=140, bind="query-params",
            label_visibility="collapsed", index=1,
        )  # fmt: skip
    return folders[name], _WINDOWS[window]


def looked(folder: Path, window_s: int) -> Looked | None:
    """The log as it is now; None after saying what is missing.

    Raises:
        LogError: It cannot be read.
    """
    key = cache_live.key_of(folder, window_s, datetime.now(UTC))
    found = cache_live.traffic(key)
    if not len(found):
        teach(f"No decisions in {folder.name}/ in this time", _HOW)
        return None
    entry = catalog_in_use(found)
    if entry is None or entry.catalog is None:
        st.warning("This console has no valid catalog; prices and bands come from one.")
        return None
    return Looked(key, found, entry.catalog)


def catalog_in_use(found: Traffic) -> CatalogEntry | None:
    """The console's catalog that decided last: the same text, else the same name, else any.

    A canary is on trial; the main revision is the one in use.
    """
    entries = [entry for entry in cache.catalogs() if entry.catalog is not None]
    main = found.rows[found.rows["arm"] != CANARY]
    last = (main if len(main) else found.rows).iloc[-1]
    ranks = [
        (entry.catalog.digest == last["catalog_digest"], entry.catalog.name == last["catalog"],
         entry.catalog.predictor_fingerprint == last["predictor"])
        for entry in entries
        if entry.catalog is not None
    ]  # fmt: skip
    return max(zip(ranks, range(len(entries)), entries, strict=True),
               key=lambda one: (one[0], -one[1]))[2] if entries else None  # fmt: skip


def teach(title: str = "No decision log yet", text: str = _HOW) -> None:
    """The empty state: how traffic comes here."""
    with st.container(border=True):
        st.markdown(f"#### {widgets.literal(title)}")
        st.markdown(text)
