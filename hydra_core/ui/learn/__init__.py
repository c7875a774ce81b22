"""The Learn page."""
