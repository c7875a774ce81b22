"""Conversations: read, played turn by turn, and what they cost."""
