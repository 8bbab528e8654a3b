"""Files and foreign objects to nouns, and back."""

from surestep.io.gymnasium import from_gymnasium
from surestep.io.model_files import read_mdp, write_mdp
from surestep.io.prism_language import from_prism

__all__ = ["from_gymnasium", "from_prism", "read_mdp", "write_mdp"]
