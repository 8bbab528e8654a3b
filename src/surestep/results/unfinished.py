"""A folder whose stress test is still to come: whole at every moment, and finished by moves alone.

What is known is saved first. Finished parts of the stress test are kept in a folder inside. In the
end the new files are written into one more folder there, which appears as a whole; from then on
they are the ones that are read, wherever they are on their way to their place.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from surestep._files import check_new_folder, failing_to_write, read_whole, write_folder
from surestep.errors import FileFailure

RUN = "run.json"
REHEARSAL = "rehearsal.json"
STRESS_TEST = "stress-test"  # finished parts of what is still to come
FINISHED = "finished"  # in there: files that are complete, on their way to their place


def path_in(folder: Path, name: str) -> Path:
    """Returns the path at which a file of a folder is to be read."""
    fresh = folder / STRESS_TEST / FINISHED / name
    return fresh if fresh.is_file() else folder / name


def is_unfinished(folder: Path) -> bool:
    """Tells whether a folder was saved before its stress test, which is still to come."""
    try:
        record = json.loads(path_in(folder, RUN).read_bytes())
        return len(record["parameters"]["sizes"]) > 0 and REHEARSAL not in record["outputs"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def check_can_begin(folder: Path) -> None:
    """Refuses a folder that has something else in it than what can be gone on with."""
    with failing_to_write(folder):  # also where its name is too long to ask for
        settled = settle(folder)
    if settled:
        raise FileFailure(f"{folder} is finished by now, and nothing is left to do")
    if not is_unfinished(folder):
        check_new_folder(folder)


def save(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes a new folder with all of the files, or nothing."""
    write_folder(folder, {name: [content] for name, content in files.items()})


def begin(folder: Path, files: Mapping[str, bytes]) -> None:
    """Saves what is known before the stress test, unless the very same is there already."""
    check_can_begin(folder)
    if not is_unfinished(folder):
        save(folder, files)
        return
    for name, content in files.items():
        if not (folder / name).is_file() or read_whole(folder / name) != content:
            raise FileFailure(
                f"{folder} holds the beginning of something else: its {name} is not what these "
                f"files, terms and versions make; give those of its {RUN}, or name a new folder"
            )


def finish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Puts the files of the finished work into the folder, and the parts that led there away."""
    parts = folder / STRESS_TEST
    if (parts / FINISHED).exists():
        shutil.rmtree(parts / FINISHED)
    save(parts / FINISHED, files)
    settle(folder)


def settle(folder: Path) -> bool:
    """Moves finished files to their place; False where there are none."""
    parts = folder / STRESS_TEST
    if not (parts / FINISHED).is_dir():
        return False
    try:
        for file in sorted((parts / FINISHED).iterdir()):
            os.replace(file, folder / file.name)
    except OSError as problem:
        raise FileFailure(f"{folder} cannot be written: {problem.strerror}") from None
    with suppress(OSError):
        shutil.rmtree(parts)
    return True
