"""Spark, in this process, on a cluster or through Spark Connect: it groups, and only grouped counts and sums travel."""
