"""States that the data suggest, learnt from an earlier part of a log so that the rest can judge."""
