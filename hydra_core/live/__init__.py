"""Live traffic from the decision log: mix, cost, a shadow catalog, drift, feedback, canaries."""
