"""Runs the migrations on the connection that `database.migrate` hands over, inside its lock."""

from __future__ import annotations

from alembic import context

from hydra_core.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transaction_per_migration=False,
)
context.run_migrations()
