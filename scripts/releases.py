"""The releases of Kafka that the tables of ``kafka/releases`` are made from."""

from typing import Final

RELEASES: Final = {
    "3.3": "3.3.2",
    "3.4": "3.4.1",
    "3.5": "3.5.2",
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.1",
    "4.0": "4.0.0",
    "4.1": "4.1.0",
    "4.2": "4.2.0",
    "4.3": "4.3.0",
    "4.4": "4.4.0",
}
"""The release that each table is taken from. Bug-fix releases do not change levels or records."""
