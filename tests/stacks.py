"""The paths of ARCHITECTURE.md, and the calls that a real run makes between their stations.

A path is the set of files on the call stack between what comes from outside and its stations: the
functions that make something of it. What a station asks on its way (an interval, a colour, a role)
is none. Where a call is added or taken away between them, the list must follow.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = "hydra_core"
OURS = (f"{ROOT}/{CORE}/", f"{ROOT}/pages/")


def documented(title):
    """(count, files) of a path in ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (told,) = re.findall(rf"^\*\*{title}\*\*, (\d+) files(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    return int(told[0]), set(re.findall(r"`([\w/]+\.py)`", told[1]))


class Stacks:
    """The stacks on which stations were called, in threads that begin inside the block.

    Args:
        stations: (path below hydra_core, qualified name) of functions.
        until: Folder of the library that calls us: a stack ends at its first frame.
        about: Whether a call is one of those that are meant, by its arguments.
    """

    def __init__(self, stations, *, until="?", about=lambda given: True):
        self.calls = set()
        self._stations = {(f"{CORE}/{path}", name) for path, name in stations}
        self._until, self._about = until, about

    def __enter__(self):
        threading.setprofile(self._called)
        return self

    def __exit__(self, *_):
        threading.setprofile(None)

    def _called(self, frame, event, _):
        if event != "call" or self._ours(frame) not in self._stations:
            return
        if self._about(frame.f_locals):
            self.calls.add(tuple(self._stack(frame)))

    def _stack(self, frame):
        """Innermost first; past the frames of other libraries."""
        while frame is not None and not frame.f_code.co_filename.startswith(self._until):
            name = self._ours(frame)
            if name is not None:
                yield name
            frame = frame.f_back

    def _ours(self, frame):
        path = frame.f_code.co_filename
        inside = path.startswith(OURS)
        return (path[len(f"{ROOT}/") :], frame.f_code.co_qualname) if inside else None

    def between(self, entries, stations):
        """Files from these functions, which a library calls, to all of the stations."""
        wanted = {(f"{CORE}/{path}", name) for path, name in stations}
        found = [one for one in self.calls if one[0] in wanted and one[-1][1] in entries]
        assert {one[0] for one in found} == wanted
        return {path for one in found for path, _ in one}
