"""Creates a release's archive of loaded classes by starting and stopping one of its nodes."""

import contextlib
import tempfile
from pathlib import Path

from featurewatch.stack.errors import StackError
from featurewatch.stack.java.class_archive import archive_path
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.java.progress import on_stderr
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.server_properties import Addresses, node_properties
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import Ports

_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def train_class_archive(cache: Cache, release: str) -> None:
    """Creates the archive if it is missing; takes a few seconds, once per Java and release.

    If this Java cannot create one, an empty file marks that, so that later starts do not retry.

    Raises:
        ArtifactError: if Kafka's jars cannot be fetched.
        JavaError: if no Java runtime is found.
    """
    path = archive_path(cache, release)
    if path.exists():
        return
    with cache.locked():
        if path.exists():  # another process created it meanwhile
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with on_stderr() as reporter:
            reporter.on_phase(f"Kafka {release}: first start, making the next ones faster")
            with tempfile.TemporaryDirectory(prefix=".training-", dir=cache.directory) as directory:
                archive = Path(directory) / path.name
                with contextlib.suppress(StackError):
                    _run_once(cache, release, Path(directory), archive)
                if not archive.exists():
                    archive.touch()
                archive.replace(path)


def _run_once(cache: Cache, release: str, directory: Path, archive: Path) -> None:
    ports = Ports()
    spec = ClusterSpec([NodeSpec(1, release)])
    addresses = {1: Addresses(broker=ports.reserve(), controller=ports.reserve())}
    home = directory / "node-1"
    node = KafkaNode(
        spec.nodes[0],
        addresses[1],
        home,
        node_properties(spec, spec.nodes[0], addresses, home / "data"),
        cache,
        spec.heap_mb,
        temporary=True,
        java_options=[f"-XX:ArchiveClassesAtExit={archive}"],
    )
    try:
        node.format(_CLUSTER_ID, [])
        node.start()
        node.stop()
    finally:
        node.kill()
        ports.release()
