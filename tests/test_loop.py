"""The loop from messages to a router and back, on real outcomes played by a fake server."""

import numpy as np
import pytest

from benchmarks.quality.loop import loop
from benchmarks.quality.real_pools import SHARED


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the replay data are not beside the project")
def test_the_loop_closes_and_the_router_after_it_is_not_worse(tmp_path):
    found = loop(tmp_path, collected=60, served=40, again=20, outer=600, seed=1)
    assert found["revisions"] == 2
    assert found["canary"] > 0
    assert found["complete"] == 80
    assert found["logged"] > 20  # with feedback only, beside those that were answered again
    assert found["change"].hi > 0  # not worse by more than noise
    low, high = found["promised"][1]["interval"]
    outer = found["outer"][1]
    assert max(low, outer.lo) <= min(high, outer.hi)
    assert np.isfinite(outer.value)
