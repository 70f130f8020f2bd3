"""Postgres: the server groups, and only grouped counts and sums travel."""
