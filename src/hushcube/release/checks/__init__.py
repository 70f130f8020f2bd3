"""The single checks of `hushcube.release.verify`, each on files, tables, sums or facts."""
