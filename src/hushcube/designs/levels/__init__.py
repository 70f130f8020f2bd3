"""Tables at nested levels of attributes."""
