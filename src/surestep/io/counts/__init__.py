"""Counts in users' own words, and the file that keeps them."""
