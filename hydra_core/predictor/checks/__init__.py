"""How good a predictor is, and how it behaves."""
