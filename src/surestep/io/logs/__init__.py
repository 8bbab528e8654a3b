"""Logs: from users' tables to counts, steps and facts."""
