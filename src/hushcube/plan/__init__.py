"""Data-free: what to measure, with which noise, and how wrong each cell will be."""
