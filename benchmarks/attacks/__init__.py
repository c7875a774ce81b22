"""Attacks on doors, durability and readers: `python -m benchmarks.attacks`."""
