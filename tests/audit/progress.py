"""What the long form says while it runs."""


def tell(scale, text):
    """Print a line; the short form is a test, and says nothing."""
    if scale == "long":
        print(f"  {text}", flush=True)
