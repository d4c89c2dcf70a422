"""Values of fields that are not given."""

from typing import Final

NO_UUID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The text of the UUID that stands for none."""
DEFAULT_TIMEOUT_MS: Final = 60_000
