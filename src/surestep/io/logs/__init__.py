"""Reads the tables of users as logs of decisions; counts, loads, checks and inspects their rows."""
