"""Trains, distils, recalibrates and exports predictor bundles. Torch lives here alone.

Nothing that serves imports this package. `python -m hydra_core.lab.training --help`.
"""
