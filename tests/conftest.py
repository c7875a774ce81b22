"""The whole suite runs with its sockets guarded (guard/sitecustomize.py), one thread a process."""

from __future__ import annotations

import os
import runpy
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

# A busy machine is slow at making examples, too: that is no fault of what is tested.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# Test processes and matrix libraries share the cores: more threads than cores only wait in turn.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

GUARD = Path(__file__).parent / "guard"
_LOG = Path(tempfile.mkdtemp(prefix="hydra-network-")) / "log"

os.environ["HYDRA_TEST_NETWORK_LOG"] = str(_LOG)
os.environ["PYTHONPATH"] = os.pathsep.join([str(GUARD), os.environ.get("PYTHONPATH", "")])
runpy.run_path(str(GUARD / "sitecustomize.py"))


def pytest_sessionfinish(session, exitstatus):
    """Fail the run where anything tried to reach another machine, even if nobody noticed."""
    tried = _LOG.read_text() if _LOG.exists() else ""
    if tried and exitstatus == 0:
        session.exitstatus = 1
    if tried:
        raise RuntimeError(f"the network was tried:\n{tried}")
