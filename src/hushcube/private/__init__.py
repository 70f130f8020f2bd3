"""The only code that sees rows or exact counts; README.md holds the privacy argument."""
