"""What a service says of itself beside its answers."""
