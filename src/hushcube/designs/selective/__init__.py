"""Designs that look, privately, how far tables are from what smaller ones say, and measure where that is much."""
