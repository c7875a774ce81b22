"""Sets that are too large for one process: one Parquet part in, one renamed file out."""
