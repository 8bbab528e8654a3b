"""The version of surestep, in a module that knows nothing of the others."""

__version__ = "0.1.0"
