"""The console as a test drives it: from app.py, with an empty workspace of its own.

Caches stay between tests, as they do between the sessions of a console: their keys name the
workspace or what lies in it.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test

from hydra_core.console.eval_sets import routing_help
from hydra_core.console.inspect import message
from hydra_core.lab.robustness.occlusion import occlude
from hydra_core.replay.routability import routability
from tests.pages.moving import to

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def read_once():
    """Each AppTest reads what every installed package says of itself and compiles the pages anew.

    Neither changes in a test run. Nor has it a client whose address and headers a page could read:
    it would make them up of mocks, each time anew.
    """

    def runtime(spec):
        made = MagicMock(spec=spec)
        made.get_client = lambda session: None
        return made

    found = functools.cache(manifest_scanner.scan_component_manifests)
    compiled = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", found)
        patch.setattr(app_test, "ScriptCache", lambda: compiled)
        patch.setattr(app_test, "MagicMock", runtime)
        yield


@pytest.fixture(scope="session", autouse=True)
def measured_once():
    """What a page measures of itself as it opens is the same for each visitor and each test.

    Inspect scores its example again without each word, Explore predicts success from the messages.
    """
    known = {}

    def occluded(predictor, text, *, turn, **options):
        asked = (predictor.bundle.fingerprint, text, turn)
        if asked not in known:
            known[asked] = occlude(predictor, text, turn=turn, **options)
        return known[asked]

    def routable(data, texts, **options):
        asked = (data.quality.tobytes(), data.requirements.tobytes(), tuple(texts or ()))
        if asked not in known:
            known[asked] = routability(data, texts, **options)
        return known[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message, "occlude", occluded)
        patch.setattr(routing_help, "routability", routable)
        yield


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(ROOT)
    return tmp_path


@pytest.fixture
def open_page(workspace: Path) -> Callable[..., AppTest]:
    """Open a page, as a link with these query parameters would."""

    def opened(page: str, **params: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        if page != "pages/operate/home.py":  # it is the first, and its name leads back to it
            to(app, page)
        for name, value in params.items():
            app.query_params[name] = value
        return app.run()

    return opened
