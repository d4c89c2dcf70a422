"""Runs ``featurewatch`` as if its package ended before a release: ``hidden.py 4.4 ARGUMENTS``.

With the path of a Python program before the arguments that one runs instead.
"""

import runpy
import shutil
import sys
import tempfile
from pathlib import Path

from featurewatch.kafka import releases

with tempfile.TemporaryDirectory() as directory:
    first = releases.release_number(sys.argv.pop(1))
    for file in releases.package_files():
        if file.number < first:
            shutil.copy(Path(file.directory, f"{file.release}.json"), directory)
    releases.DIRECTORY = directory  # type: ignore[misc]
    releases.reread()

    if sys.argv[1].endswith(".py"):
        del sys.argv[0]
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        from featurewatch.cli.main import main

        main()
