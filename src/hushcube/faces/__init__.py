"""Face values: tables that look like counts. Post-processing of a measurement; it costs no budget."""
