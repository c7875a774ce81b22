"""What the Live page shows, as plain values."""
