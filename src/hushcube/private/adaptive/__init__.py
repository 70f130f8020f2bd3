"""Noise that is taken away step by step, at the cost of the last step alone."""
