"""The Catalog page."""
