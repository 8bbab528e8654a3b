"""Tables and results to pictures and pages."""
