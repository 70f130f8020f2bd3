"""What a measurement costs, in exact fractions, and how a guarantee becomes a budget."""
