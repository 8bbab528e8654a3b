"""PIPELINE: from a log to a result, and from a result back to the log."""
