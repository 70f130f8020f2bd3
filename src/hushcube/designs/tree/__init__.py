"""Levels of trees over ordered attributes."""
