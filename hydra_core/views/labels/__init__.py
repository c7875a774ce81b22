"""What the Labels page shows of a labelling run."""
