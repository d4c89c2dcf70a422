"""Reads desired levels from a text."""

from pathlib import Path
from tempfile import TemporaryDirectory

from featurewatch.pipeline.fleet.desired import DesiredLevels, read_desired


def desired_of(text: str) -> DesiredLevels:
    """The levels in a file with this text."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "desired.yaml"
        file.write_text(text, newline="")
        return read_desired(file)
