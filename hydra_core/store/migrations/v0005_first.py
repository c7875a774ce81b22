"""The first release, whose tables `database.py` makes; 0001 to 0004 were never released."""

from __future__ import annotations

revision = "0005"
down_revision = None


def upgrade() -> None:
    """Nothing: no store is older."""
