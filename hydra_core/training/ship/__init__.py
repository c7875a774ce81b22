"""A trained predictor to a bundle."""
