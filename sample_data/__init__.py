"""The project's own sample data and the programs that generate it (see README.md)."""
