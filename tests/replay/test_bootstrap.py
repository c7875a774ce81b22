"""The fast bootstrap and one that adds up query by query give the same interval."""

import pytest

from benchmarks.speed.bootstrap import compared, difference


@pytest.mark.parametrize(("queries", "resamples"), [(1, 3), (2, 50), (37, 200), (120, 101)])
def test_the_interval_is_that_of_the_plain_reference(queries, resamples):
    assert difference(*compared(queries, resamples)) < 1e-12
