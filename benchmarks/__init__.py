"""Speed, measured as ratios against a baseline in the same run, because machines are noisy. `make bench` runs all."""
