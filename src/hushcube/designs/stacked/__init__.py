"""What was measured one after the other, answered together."""
