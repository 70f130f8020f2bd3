"""Methods that choose their noise while answers come in, for small relative errors: their public parameters."""
