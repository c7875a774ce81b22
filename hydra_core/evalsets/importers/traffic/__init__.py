"""Logs of live traffic as eval sets: one query, one served model, one outcome each."""
