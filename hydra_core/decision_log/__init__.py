"""The decision log: one append-only record for each decision and each outcome that came back."""
