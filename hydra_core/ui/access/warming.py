"""What the first visit would wait for is done while the console starts and the browser loads.

The first page's modules are imported and its figures are computed once, in a thread of their own.
Whoever comes sooner waits for the same results: caches compute an entry once.
"""

from __future__ import annotations

import gc
import logging
import threading
from typing import Final

__all__ = ["begin"]

#: These say for every call that there is no browser session; here there cannot be one.
_LOUD: Final = (
    "streamlit.runtime.caching.cache_data_api",
    "streamlit.runtime.scriptrunner_utils.script_run_context",
    "streamlit.runtime.state.session_state_proxy",
)


def begin() -> threading.Thread:
    """Start it; a fault is left to the first visit, which says it to whoever can mend it."""
    thread = threading.Thread(target=_warm, name="warming", daemon=True)
    for name in _LOUD:
        logging.getLogger(name).addFilter(lambda _: threading.current_thread() is not thread)
    thread.start()
    return thread


def _warm() -> None:
    try:
        from hydra_core.ui.overview.panels import prepare

        prepare()
        # Streamlit collects garbage after every run, and the page is not done before that has
        # looked at everything: what is there from now on stays, and need not be looked at.
        gc.freeze()
    except Exception:  # noqa: BLE001 (nobody is there to be told)
        logging.getLogger(__name__).debug("the first page was not prepared", exc_info=True)
