"""Encoder, heads and the training loop."""
