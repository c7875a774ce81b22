"""Verbs that route messages and start servers."""
