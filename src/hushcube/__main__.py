"""`python -m hushcube` is `hushcube`."""

from hushcube.cli import main

main()
