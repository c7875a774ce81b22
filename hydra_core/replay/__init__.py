"""Replaying an eval set: frontier, metrics, verdict."""
