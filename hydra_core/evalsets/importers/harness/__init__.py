"""Files of evaluation harnesses: one adapter a harness, on one reader."""
