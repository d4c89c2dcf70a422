"""Runs ``featurewatch`` as if its package ended before a release: ``hidden.py 4.4 ARGUMENTS``."""

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

    from featurewatch.cli.main import main

    main()
