"""Compile all kernels for the usual processors: `python tools/machine_code.py FOLDER`.

The wheel of a release carries what FOLDER then has, for each Python that ran this
(`tools/check_wheel.py --machine-code FOLDER`). Code for several threads is left out: large logs
alone need it.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        os.environ["NUMBA_CACHE_DIR"] = place  # Numba reads it when it is imported
        from surestep.kernels.ahead import all_kernels, compile_ahead, kernel_of

        names = all_kernels()
        compile_ahead(names)
        for name in names:
            kernel_of(name).code(False)
        for path in Path(place).rglob("*.nb?"):
            shutil.copy2(path, folder)


if __name__ == "__main__":
    main()
