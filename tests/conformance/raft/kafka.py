"""Kafka's own voter, ``KafkaRaftClient``, in a JVM that answers histories line by line."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from featurewatch.stack.java.jars import Cache
from tests.conformance.feature_control.kafka import ControllerHarness, java_harness

_JAVA: Final = Path(__file__).with_name("java")
RELEASES: Final[Mapping[str, tuple[str, ...]]] = {
    "3.9.1": ("v391",),
    "4.3.1": ("v430", "v431"),
    "4.4.0": ("v430", "v440"),
}
"""The releases that can be asked, and the folders of what differs between them."""


@contextmanager
def raft_voters(release: str, cache: Cache, directory: Path) -> Iterator[ControllerHarness]:
    """Compiles the harness of a release into a directory and runs it until the block ends."""
    sources = sorted(_JAVA.glob("*.java"))
    for folder in RELEASES[release]:
        sources += sorted((_JAVA / folder).glob("*.java"))
    main_class = "org.apache.kafka.raft.Harness"
    with java_harness(sources, main_class, release, cache, directory) as kafka:
        yield kafka
