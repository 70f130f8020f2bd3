"""Other libraries on the same jobs, at equal privacy."""
