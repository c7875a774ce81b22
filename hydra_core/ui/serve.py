"""Start the console.

`streamlit run app.py` works too, but the first visit after a start must then be the front page:
Streamlit takes a folder named `pages` for its own older layout until `st.navigation` has run once,
and answers a deep link that comes before with "Page not found".
"""

from __future__ import annotations

from collections.abc import Sequence

from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import cli

from hydra_core.shipped import APP

__all__ = ["serve"]


def serve(options: Sequence[str] = ()) -> None:
    """Run the console until it is stopped.

    Args:
        options: Those of `streamlit run`, e.g. `["--server.port", "8600"]`.
    """
    PagesManager.uses_pages_directory = False
    cli.main(["run", str(APP), *options], prog_name="streamlit")
