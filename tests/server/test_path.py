"""The path of a live request in ARCHITECTURE.md, held to the calls of a real one."""

import time

from tests.server.conftest import asked
from tests.stacks import Stacks, documented

STATIONS = [
    ("server/chat.py", "read_chat"),
    ("server/live.py", "LiveCatalog.now"),
    ("routing/router.py", "Router.route"),
    ("server/upstream/calls.py", "Caller.call"),
    ("decision_log/writer.py", "LogWriter.add"),
]
ENTRIES = ("_Routes.chat", "Decider.decide", "WholeAnswer.__call__")


def test_a_live_request_goes_as_documented(make, tmp_path):
    with Stacks(STATIONS) as stacks:
        answer = make(log=str(tmp_path / "log")).post("/v1/chat/completions", json=asked())
        for _ in range(1000):  # the log is told once the client has its answer
            if any(one[0][1] == "LogWriter.add" for one in set(stacks.calls)):
                break
            time.sleep(0.01)
    assert answer.status_code == 200
    files = stacks.between(ENTRIES, STATIONS)
    assert documented("A live request") == (len(files), files)
