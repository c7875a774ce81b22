"""The Flight page: choose or load a flight, its results, looks and plan."""
