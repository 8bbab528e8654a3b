"""A result to one page that needs nothing else, and the words that command line and page share."""
