"""The Eval sets page."""
