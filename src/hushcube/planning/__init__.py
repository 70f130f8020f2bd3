"""From a request to a plan: choosing among strategies, finding budgets, reading plans again."""
