"""The mathematics of the day after: what new episodes say of a policy that was adopted."""
