"""Figures of the Learn page."""
