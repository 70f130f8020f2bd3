"""A release for other programs: tables as CSV, XLSX, JSON-stat, SDMX-CSV or plain pages."""
