"""The published bundle: written once, opened by anyone, queried without hushcube's private side."""
