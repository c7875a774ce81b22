"""The Tuner page."""
