"""What the Learn page shows, as plain values."""
