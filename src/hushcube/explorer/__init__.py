"""A release for people who read it in a browser: a page that is one file, or that is served. Never sees rows."""
