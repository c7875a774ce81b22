"""`python -m benchmarks.verdict_calibration`: see `benchmarks/quality/verdict_calibration.py`."""

from benchmarks.quality.verdict_calibration import main

main()
