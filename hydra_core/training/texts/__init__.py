"""Messages, labels, splits, wordings and tokens."""
