"""Learn an outcome model from an eval set, and say honestly what it is worth."""
