"""Keys typed fast into a table reach the cells they were meant for."""
