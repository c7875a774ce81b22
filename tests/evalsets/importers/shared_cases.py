"""Where the inputs rebuilt from public reports lie; tests of them are skipped without."""

from pathlib import Path

import pytest

CASES = Path(__file__).parents[4] / "shared" / "cases"
needs_cases = pytest.mark.skipif(not CASES.exists(), reason="needs ../shared/cases")
