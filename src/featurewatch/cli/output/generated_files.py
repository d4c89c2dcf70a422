"""Writes the files that a command generates into a directory."""

from collections.abc import Mapping
from pathlib import Path

from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.terminal import print_line


def write_files(directory: Path | None, texts: Mapping[str, str]) -> None:
    """Writes files, whose names may have folders, and prints the path of each.

    A file that is there is replaced.

    Raises:
        UsageError: No directory is given, or it cannot be written.
    """
    if directory is None:
        raise UsageError("give the directory for the files with --out DIRECTORY")
    for name, text in texts.items():
        file = directory / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{file} cannot be written ({error.strerror or error}): give another directory "
                "with --out"
            ) from None
        print_line(str(file))
