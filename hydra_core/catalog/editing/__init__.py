"""Edits of catalog texts in place: only the characters of the edited value change."""
