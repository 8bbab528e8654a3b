"""Writes reports: one page of HTML without other files, and the same sections in a terminal."""
