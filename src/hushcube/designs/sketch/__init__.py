"""Buckets into which the cells of a large table are thrown."""
