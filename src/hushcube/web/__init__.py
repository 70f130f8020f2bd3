"""What every server of hushcube shares: connections, headers, and one form of refusals. Knows nothing of releases."""
