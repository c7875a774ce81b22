"""A knob that the page follows while it is dragged."""
