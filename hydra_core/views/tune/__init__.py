"""The views of the Tune page beside the frontier."""
