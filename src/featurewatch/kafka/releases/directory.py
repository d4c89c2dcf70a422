"""The directory with the tables that a user has learned, for this process and those it starts.

The setting is ``releases.directory``. Tables are read once, when a process first needs one, so the
directory must be chosen before; an environment variable carries it to processes that are started.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "FEATUREWATCH_RELEASES__DIRECTORY"

_is_given: Final = VARIABLE in os.environ
"""Whether whoever started this process chose the directory, which overrides a configuration file.
"""


def default_releases_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The default directory, in the user's data directory by the XDG rules."""
    base = environment.get("XDG_DATA_HOME")
    data = Path(base) if base else Path("~/.local/share").expanduser()
    return data / "featurewatch" / "releases"


def releases_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory with learned tables; it need not exist."""
    given = environment.get(VARIABLE)
    return Path(given).expanduser() if given else default_releases_directory(environment)


def choose_releases_directory(directory: Path) -> None:
    """Makes a directory of a configuration file that of this process and those that it starts.

    The environment variable, if this process was started with it, takes precedence.
    """
    if not _is_given:
        os.environ[VARIABLE] = str(directory.expanduser().absolute())
