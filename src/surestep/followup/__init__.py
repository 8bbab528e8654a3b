"""Follows up a result: the mathematics of pilots, and of watching a policy that is in use."""
