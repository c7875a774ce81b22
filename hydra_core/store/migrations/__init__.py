"""Alembic migrations of the workspace store, run when it is opened."""
