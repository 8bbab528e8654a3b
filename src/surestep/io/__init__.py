"""Files and foreign objects to nouns, and back."""

from surestep.io.gymnasium import from_gymnasium

__all__ = ["from_gymnasium"]
