"""What must hold before a release is built. Pure."""

import re
import tomllib
from typing import Final

_HEADING: Final = re.compile(r"^## (?P<version>\S+)(?P<rest>.*)$", re.MULTILINE)


class ReleaseError(Exception):
    """A release cannot be built; the message says why, and what to do."""


def version_of(project: str) -> str:
    """Returns the version in the text of ``pyproject.toml``."""
    return str(tomllib.loads(project)["project"]["version"])


def notes_of(changelog: str, version: str) -> str:
    """Returns the entry of a version in the text of ``CHANGELOG.md``, without its heading.

    Raises:
        ReleaseError: There is no entry, it is empty, or it is not the newest.
    """
    headings = list(_HEADING.finditer(changelog))
    versions = [heading["version"] for heading in headings]
    if version not in versions:
        raise ReleaseError(f"CHANGELOG.md has no entry for {version}: write '## {version}'")
    number = versions.index(version)
    if number:
        raise ReleaseError(
            f"CHANGELOG.md has {versions[0]} before {version}: set the version in pyproject.toml"
        )
    end = headings[1].start() if len(headings) > 1 else len(changelog)
    notes = changelog[headings[0].end() : end].strip()
    if not notes:
        raise ReleaseError(f"the entry for {version} in CHANGELOG.md is empty")
    return f"{notes}\n"
