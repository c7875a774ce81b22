"""How a test moves between pages and their parts."""

from urllib.parse import parse_qsl

from streamlit.testing.v1 import AppTest


def to(app: AppTest, page: str) -> AppTest:
    """Open a page, such as `pages/decide/tune.py?part=search`, as a link to it would."""
    file, _, query = page.partition("?")
    app.switch_page(file)
    for name, value in parse_qsl(query):
        app.query_params[name] = value
    return app
