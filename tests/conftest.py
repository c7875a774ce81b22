"""The whole suite runs with its sockets guarded (guard/sitecustomize.py), one thread a process."""

import gc
import os
import runpy
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Test processes and matrix libraries share the cores: more threads than cores only wait in turn.
# The libraries read this as they are loaded.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# A busy machine is slow at making examples, too: that is no fault of what is tested.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

#: CPU time that a test of the fast run may use: ten times what the slowest uses on a calm machine.
MOST_CPU_S = 10

#: A file system in memory: what tests write need not outlive them, and `fsync` waits for nothing.
MEMORY = Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

#: What runs a page, a service or a command as a user would: two thirds of the time, so not fast.
WHOLE = (
    "pages/",
    "server/",
    "console/test_demos",
    "console/test_serve",
    "lab/audit/",
    "lab/collect/",
    "lab/labeling/",
    "replay/test_partitions",
    "test_cli",
    "test_docs",
)

TESTS = Path(__file__).parent
GUARD = TESTS / "guard"
#: One folder for all processes of a run; the first one takes it away again.
_MADE_ONCE = "HYDRA_TEST_MADE_ONCE"
_FIRST = _MADE_ONCE not in os.environ
if _FIRST:
    os.environ[_MADE_ONCE] = tempfile.mkdtemp(prefix="hydra-made-once-")
_LOG = Path(os.environ[_MADE_ONCE]) / "network"

os.environ["HYDRA_TEST_NETWORK_LOG"] = str(_LOG)
os.environ["PYTHONPATH"] = os.pathsep.join([str(GUARD), os.environ.get("PYTHONPATH", "")])
runpy.run_path(str(GUARD / "sitecustomize.py"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported stays: nobody looks for garbage in it, as Streamlit does after each run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what lies in one of `WHOLE`."""
    for item in items:
        if item.path.relative_to(TESTS).as_posix().startswith(WHOLE):
            item.add_marker("whole")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """The fast run stays fast: what takes long in it is told to say so."""
    began = _cpu_s()
    result = yield
    used = _cpu_s() - began
    if "not slow" in item.config.option.markexpr and used > MOST_CPU_S:
        pytest.fail(f"it used {used:.0f} s of a core: mark it slow, or make it faster")
    return result


def _cpu_s():
    """What this process and those that it waited for have used."""
    return sum(os.times()[:4])


def pytest_sessionfinish(session, exitstatus):
    """Fail the run where anything tried to reach another machine, even if nobody noticed.

    The first process ends last and speaks for all: what a worker raises here fails no run.
    """
    if not _FIRST:
        return
    tried = _LOG.read_text() if _LOG.exists() else ""
    shutil.rmtree(os.environ.pop(_MADE_ONCE), ignore_errors=True)
    if tried and exitstatus == 0:
        session.exitstatus = 1
    if tried:
        raise RuntimeError(f"the network was tried:\n{tried}")


def pytest_make_parametrize_id(val):
    """Bytes may hold the second in which they were packed: every worker must name a test alike."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None
