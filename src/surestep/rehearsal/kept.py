"""Finished blocks of a rehearsal in a folder, so that one that was interrupted can go on.

A block knows what made it: the problem, the settings, the versions and the sources. One that
something else made is made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from surestep._blocks import BlockFolder, code_here, digest_of
from surestep.rehearsal.block import Outcomes, RehearsalPlan, WorldBlock


@dataclass(frozen=True, slots=True)
class KeptBlocks:
    """A folder of finished blocks; `made_with` says what all of them were made with."""

    folder: Path
    made_with: str = ""  # by default nothing is told; `about` adds what a rehearsal knows

    def about(self, plan: RehearsalPlan) -> KeptBlocks:
        """Returns the blocks of one rehearsal, which know the sources too."""
        return KeptBlocks(self.folder, digest_of((self.made_with, code_here(), plan[:4])))

    def read(self, block: WorldBlock) -> Outcomes | None:
        """Returns the outcomes of a block; None where they have to be found out."""
        kept = BlockFolder(self.folder).read("-".join(map(str, block.place)))
        if kept is None or kept.made_by != self.made_by(block):
            return None
        return Outcomes(**{name: kept.arrays.get(name) for name in Outcomes._fields})  # type: ignore[arg-type]

    def write(self, block: WorldBlock, outcomes: Outcomes) -> None:
        """Keeps what came out of a block."""
        arrays = {name: values for name, values in outcomes._asdict().items() if values is not None}
        BlockFolder(self.folder).write("-".join(map(str, block.place)), self.made_by(block), arrays)

    def made_by(self, block: WorldBlock) -> str:
        """Returns a digest of all that decides what comes out of a block."""
        return digest_of((self.made_with, block.plan.seed, block[1:]))
