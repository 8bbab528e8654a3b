"""`python -m surestep` is the command `surestep`."""

from surestep.cli.main import main

main(prog_name="surestep")
