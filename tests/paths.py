"""Where the repository is."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
"""The path on which processes that tests start import the project."""
PACKAGE = SRC / "featurewatch"
"""The product's code."""
