"""What the long form says while it runs."""

part = "audit"
"""The part that runs in this process."""


def tell(scale, text):
    """Print a line; the short form is a test, and says nothing."""
    if scale == "long":
        print(f"  {part}: {text}", flush=True)
