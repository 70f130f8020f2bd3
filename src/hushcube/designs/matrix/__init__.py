"""The rows of any matrix over a small table."""
