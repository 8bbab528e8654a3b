"""Sentences made from facts: the one home of words that the command line and the page share."""
