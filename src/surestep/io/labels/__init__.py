"""Labels: the users' own words for states and actions, bins, lists and policies in these words."""
