"""A folder whose stress test is still to come, whole at every moment.

What is known is saved first. Finished blocks of the stress test are kept in a folder inside. In the
end all new files are one more block there, which appears as a whole; from then on they are read
from it, until they are in their place and the blocks are gone.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surestep._blocks import BlockFolder, code_here
from surestep._files import check_new_folder, failing_to_write, read_whole, write_folder
from surestep.errors import FileFailure, SurestepError

RUN = "run.json"
REHEARSAL = "rehearsal.json"
STRESS_TEST = "stress-test"  # finished parts of what is still to come
FINISHED = "finished"  # in there: the block of all files, on their way to their place


def finished_files(folder: Path) -> dict[str, bytes]:
    """Returns the files that are on their way to their place; mostly there are none."""
    kept = BlockFolder(folder / STRESS_TEST).read(FINISHED)
    arrays = {} if kept is None else kept.arrays
    return {Path(name).name: content.tobytes() for name, content in arrays.items()}


def read_file(folder: Path, name: str) -> bytes:
    """Reads a file of a folder, also one that is still on its way to its place."""
    content = finished_files(folder).get(name)
    return read_whole(folder / name) if content is None else content


def record_in(folder: Path) -> dict[str, Any]:
    """Reads the record in a folder; returns an empty one where there is none."""
    try:
        record = json.loads(read_file(folder, RUN))
    except (SurestepError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def is_unfinished(folder: Path) -> bool:
    """Tells whether a folder was saved before its stress test, which is still to come."""
    try:
        record = record_in(folder)
        return len(record["parameters"]["sizes"]) > 0 and REHEARSAL not in record["outputs"]
    except (KeyError, TypeError):
        return False


def check_can_begin(folder: Path, said: Mapping[str, Any] | None = None) -> None:
    """Refuses a folder that has something else in it than what can be gone on with.

    A finished one may be of the very same work, where its record has the description `said`.
    """
    with failing_to_write(folder):  # also where its name is too long to ask for
        settle(folder)
    if not is_unfinished(folder) and (said is None or record_in(folder).get("description") != said):
        check_new_folder(folder)


def save(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes a new folder with all of the files, or nothing."""
    write_folder(folder, {name: [content] for name, content in files.items()})


def begin(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Saves what is known before the stress test, unless the very same is there already.

    True where that is finished: its record says the same, but for what became of its files.
    """
    now = json.loads(files[RUN])
    check_can_begin(folder, now.get("description"))
    there = record_in(folder)
    if not there:
        save(folder, files)
        return False
    if not is_unfinished(folder):
        if there | {"outputs": {}} != now | {"outputs": {}}:
            check_new_folder(folder)
        shutil.rmtree(folder / STRESS_TEST, ignore_errors=True)  # what a killed command left
        return True
    for name, content in files.items():
        if not (folder / name).is_file() or read_whole(folder / name) != content:
            raise FileFailure(
                f"{folder} holds the beginning of something else: its {name} is not what these "
                f"files, terms and versions make; give those of its {RUN}, or name a new folder"
            )
    return False


def finish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Puts the files of the finished work into the folder, and the parts that led there away."""
    arrays = {name: np.frombuffer(content, np.uint8) for name, content in files.items()}
    BlockFolder(folder / STRESS_TEST).write(FINISHED, code_here(), arrays)
    settle(folder)


def settle(folder: Path) -> None:
    """Puts finished files into their place."""
    files = finished_files(folder)
    with failing_to_write(folder):
        for name, content in files.items():
            (folder / name).write_bytes(content)
    if files:
        shutil.rmtree(folder / STRESS_TEST, ignore_errors=True)
