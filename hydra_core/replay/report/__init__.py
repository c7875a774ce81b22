"""The evaluation as a document."""
