"""Saves results; before a stress test, too, and completes the folder after it.

A crash loses nothing. Everything else is saved first. Finished blocks of the stress test go into a
folder inside. At the end all new files are written there as one more block, whole or not at all.
From then on they are read from that block, until they are copied to their place and the blocks are
deleted.
"""

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from surestep._blocks import BlockFolder, code_here
from surestep._files import (
    check_new_folder,
    failing_to_write,
    read_path,
    read_whole,
    write_folder,
)
from surestep.errors import FileFailure, SurestepError
from surestep.results.record import digests_of

RUN = "run.json"
REHEARSAL = "rehearsal.json"
RULES = "rules.json"
CERTIFICATE = "certificate.json"
REPORT = "report.html"
STRESS_TEST = "stress-test"  # the folder of finished blocks
FINISHED = "finished"  # the block with all new files, until they are copied


class Saved(ABC):
    """A result of any kind: a folder holds its files, and the record with their digests."""

    __slots__ = ()
    record: Any
    report: str

    def _repr_html_(self) -> str:
        """Returns the report in a frame, for notebooks."""
        return f'<iframe srcdoc="{escape(self.report)}" width="100%" height="700"></iframe>'

    @abstractmethod
    def contents(self) -> dict[str, bytes]:
        """Returns all files but the record.

        Returns
        -------
        dict of str to bytes
            The content of each file by its name.
        """

    def files(self) -> dict[str, bytes]:
        """Returns the files of a saved result; equal results have equal bytes.

        Returns
        -------
        dict of str to bytes
            The content of each file by its name.
        """
        contents = self.contents()
        return contents | {RUN: self.record.to_json(digests_of(contents)).encode()}

    def save(self, directory: str | Path) -> None:
        """Writes a new folder, whole or not at all.

        Parameters
        ----------
        directory : str or path
            The folder, which must not be there.
        """
        write_folder(read_path(directory), self.files())


def finished_files(folder: Path) -> dict[str, bytes]:
    """Returns the new files that were not copied to their place yet; usually none."""
    kept = BlockFolder(folder / STRESS_TEST).read(FINISHED)
    arrays = {} if kept is None else kept.arrays
    return {Path(name).name: content.tobytes() for name, content in arrays.items()}


def read_file(folder: Path, name: str) -> bytes:
    """Reads a file of a folder, or its new content if that was not copied yet."""
    content = finished_files(folder).get(name)
    return read_whole(folder / name) if content is None else content


def record_in(folder: Path) -> dict[str, Any]:
    """Reads run.json in a folder; returns an empty dictionary if there is none."""
    try:
        record = json.loads(read_file(folder, RUN))
    except (SurestepError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def is_unfinished(folder: Path) -> bool:
    """Tells whether a folder holds a result whose planned stress test is not finished."""
    try:
        record = record_in(folder)
        return len(record["parameters"]["sizes"]) > 0 and REHEARSAL not in record["outputs"]
    except (KeyError, TypeError):
        return False


def check_can_begin(folder: Path, said: Mapping[str, Any] | None = None) -> None:
    """Refuses a folder that holds anything but an unfinished result.

    A finished result is accepted if its record has the description `said`.
    """
    with failing_to_write(folder):  # or its name is too long for the system
        settle(folder)
    if not is_unfinished(folder) and (said is None or record_in(folder).get("description") != said):
        check_new_folder(folder)


def begin(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Saves the files before the stress test; returns whether the folder is already finished.

    It is, if its record is the same, apart from the digests of the files. Refuses a folder with
    another result.
    """
    now = json.loads(files[RUN])
    check_can_begin(folder, now.get("description"))
    there = record_in(folder)
    if not there:
        write_folder(folder, files)
        return False
    if not is_unfinished(folder):
        if there | {"outputs": {}} != now | {"outputs": {}}:
            check_new_folder(folder)
        shutil.rmtree(folder / STRESS_TEST, ignore_errors=True)  # left by a killed command
        return True
    for name, content in files.items():
        if not (folder / name).is_file() or read_whole(folder / name) != content:
            raise FileFailure(
                f"{folder} holds the beginning of something else: its {name} is not what these "
                f"files, terms and versions make; give those of its {RUN}, or name a new folder"
            )
    return False


def finish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files of the finished result into the folder, and deletes the blocks."""
    arrays = {name: np.frombuffer(content, np.uint8) for name, content in files.items()}
    BlockFolder(folder / STRESS_TEST).write(FINISHED, code_here(), arrays)
    settle(folder)


def settle(folder: Path) -> None:
    """Copies finished files to their place, if there are any, and deletes the blocks."""
    files = finished_files(folder)
    with failing_to_write(folder):
        for name, content in files.items():
            (folder / name).write_bytes(content)
    if files:
        shutil.rmtree(folder / STRESS_TEST, ignore_errors=True)
