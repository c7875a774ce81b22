"""Public price lists beside a catalog's prices."""
