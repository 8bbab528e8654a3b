"""The parts of the site that Sphinx and its extensions do not make: `make docs`."""
