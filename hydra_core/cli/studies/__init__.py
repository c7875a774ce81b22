"""Verbs that measure: labels, human ratings, flights."""
