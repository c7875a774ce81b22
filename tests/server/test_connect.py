"""What the console says about connecting a client is answered by the service as it stands."""

import contextlib
import io
import subprocess

import pytest
import yaml

from hydra_core.console.live.traffic import ADDRESS, upstream_note, ways
from tests.server.conftest import MODELS, upstreams_text
from tests.server.fake_upstream import PIECES

NAMES = list(ways(ADDRESS, MODELS[:2]))
TEXT = "".join(PIECES)


@pytest.mark.parametrize("name", NAMES)
def test_both_examples_of_a_form_are_answered(make, upstream, tmp_path, name):
    speaks = ways(ADDRESS, MODELS[:2])[name].speaks
    file = yaml.safe_load(upstreams_text(upstream.url))
    file["upstreams"][0]["speaks"] = [speaks or "chat"]
    path = tmp_path / "speaking.yaml"
    path.write_text(yaml.safe_dump(file))
    client = make(upstreams=str(path) if speaks else "")
    way = ways(str(client.base_url), (MODELS[0], MODELS[-1]))[name]
    done = subprocess.run(["bash", "-ec", way.curl], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found = {}
        exec(way.python, found)  # noqa: S102 (the page's own example)
        if name != "System One":  # whose example closes its client
            found["client"].close()
    expected = {"Decisions": MODELS, "System One": ("SIMPLE", "COMPLEX")}.get(name, (TEXT,))
    assert said.getvalue().strip() in expected
    assert ("speaks: [" in upstream_note(way)) == bool(speaks)
