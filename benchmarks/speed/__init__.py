"""Time and memory of the core."""
