"""The Live page: which log, and one question about it at a time."""
