"""Tables to pictures: a figure of a run, or of formulas, and the table beside it."""
