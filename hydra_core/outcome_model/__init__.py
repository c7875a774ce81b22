"""What an operator's models are predicted to achieve and cost: load and predict, no fitting."""
