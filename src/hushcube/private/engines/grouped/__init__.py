"""Engines that group where the data lives: what they share, and what a warehouse must do."""
