"""Outcomes for an eval set: every model answers every message, a grader says what was achieved."""
