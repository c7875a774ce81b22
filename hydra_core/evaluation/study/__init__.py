"""What-if, sensitivity, portability, ablation, languages, routability, baselines."""
