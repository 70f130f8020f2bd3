"""Searching for supports: which larger tables to measure for pure epsilon. Combinatorial, public, repeatable."""
