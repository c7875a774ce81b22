"""Eval sets on disk: format, rules, folders, scoring."""
