"""How good routing, predictor and statistics are."""
