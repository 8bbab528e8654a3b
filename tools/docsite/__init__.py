"""What makes the site of the documentation, beside Sphinx: `make docs`."""
