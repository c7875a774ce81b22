"""The Ship page."""
