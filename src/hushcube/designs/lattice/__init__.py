"""Marginals, or parts of marginals, in a product basis."""
