"""What a draft, or an event, would change."""
