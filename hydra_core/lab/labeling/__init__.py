"""Requirement labels by a judge: two answers a message, scored in both orders."""
