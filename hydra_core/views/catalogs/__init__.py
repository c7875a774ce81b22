"""What is shown of catalogs: their pools, policies, and new ones."""
