"""Start the console: `python -m hydra_core.ui.serve [streamlit options]`.

`streamlit run app.py` works too, but the first visit after a start must then be the front page:
Streamlit takes a folder named `pages` for its own older layout until `st.navigation` has run once,
and answers a deep link that comes before with "Page not found".
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import cli

__all__ = ["main"]

_APP = Path(__file__).resolve().parents[2] / "app.py"


def main() -> None:
    """Run the console until it is stopped; options are those of `streamlit run`."""
    PagesManager.uses_pages_directory = False
    cli.main(["run", str(_APP), *sys.argv[1:]], prog_name="streamlit")


if __name__ == "__main__":
    main()
