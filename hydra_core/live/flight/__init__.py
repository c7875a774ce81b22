"""A/B flights: effects with intervals that may be looked at daily (section Production A/B)."""
