"""Operating points, aims, tuning and pools: what to choose."""
