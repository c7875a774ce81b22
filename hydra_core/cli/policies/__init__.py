"""Verbs that evaluate, learn and report policies."""
