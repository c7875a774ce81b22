"""Verbs that make eval sets and what lies beside them."""
