"""Questions that come one by one, answered from one account: how many at equal error, by whom."""
