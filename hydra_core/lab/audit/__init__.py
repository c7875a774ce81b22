"""Human ratings beside predictor and labels: samples, agreement, tables (appendix Human Eval)."""
