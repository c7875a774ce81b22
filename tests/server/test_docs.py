"""The curl examples of docs/deploy.md work as they stand."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.conftest import asked

BLOCKS = re.findall(r"```bash\n(.*?)```", Path("docs/deploy.md").read_text(), re.DOTALL)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_every_example_is_answered(make, tmp_path):
    client = make(log=str(tmp_path / "log"))
    decision = client.post("/v1/decision", json=asked()).json()["decision_id"]
    assert len(BLOCKS) >= 5
    for block in BLOCKS:
        script = block.replace("http://127.0.0.1:8600", str(client.base_url).rstrip("/"))
        script = script.replace("DECISION_ID", decision)
        done = subprocess.run(["bash", "-ec", script], capture_output=True, check=False)
        assert done.returncode == 0, (block, done.stderr)
        assert done.stdout
