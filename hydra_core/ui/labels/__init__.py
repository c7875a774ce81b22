"""The Labels page: a labelling run while it is under way and afterwards."""
