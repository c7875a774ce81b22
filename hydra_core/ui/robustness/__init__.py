"""The Robustness page."""
