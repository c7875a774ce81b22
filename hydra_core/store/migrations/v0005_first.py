"""The first release, whose tables `database.py` makes; 0001 to 0004 were never released."""

revision = "0005"
down_revision = None


def upgrade() -> None:
    """Nothing: no store is older."""
