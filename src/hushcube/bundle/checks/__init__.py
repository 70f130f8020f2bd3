"""The single checks of `hushcube.bundle.verify`, each on files, tables, sums or facts."""
