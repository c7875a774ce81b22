"""What a knob shows at every step, ready before the hand moves."""
