"""What a demo tells."""
