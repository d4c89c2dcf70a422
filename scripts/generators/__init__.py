"""What `scripts.generate` writes: each module has functions that yield paths with their texts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

Texts = Iterator[tuple[Path, str]]
