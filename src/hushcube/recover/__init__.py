"""Pure post-processing of measurements: it never sees rows or exact counts, and costs no budget."""
