"""Untrusted YAML to checked values, every problem with its place."""
