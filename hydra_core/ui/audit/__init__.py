"""The Audit page: draw a sample, rate it blind, agreement, recalibration."""
