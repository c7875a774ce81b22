"""What is shown of catalogs: their pools, policies, demos, and new ones."""
