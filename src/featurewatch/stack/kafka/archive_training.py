"""Creates a release's archive of loaded classes by starting and stopping one of its nodes."""

import signal
import tempfile
from pathlib import Path
from typing import Final

from featurewatch.stack.errors import StackError
from featurewatch.stack.java.class_archive import archive_path
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.java.progress import on_stderr
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.server_properties import Addresses, node_properties
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.process.ports import Ports

_CLUSTER_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_NO_SUCH_OPTION: Final = "Could not create the Java Virtual Machine"
_DUMP_TIMEOUT_S: Final = 180.0
"""Writing the archive takes seconds of processor time, which a busy machine may not have soon."""


def train_class_archive(cache: Cache, release: str) -> None:
    """Creates the archive if it is missing; takes a few seconds, once per Java and release.

    If this Java cannot create one, a file beside it marks that, so that later starts do not retry.
    Anything else that goes wrong, such as a machine too busy to start the node in time, leaves no
    mark: the next start tries again.

    Raises:
        ArtifactError: if Kafka's jars cannot be fetched.
        JavaError: if no Java runtime is found.
    """
    path = archive_path(cache, release)
    refused = path.with_suffix(".refused")
    if _is_archive(path) or refused.exists():
        return
    with cache.locked():
        if _is_archive(path) or refused.exists():  # another process created it meanwhile
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with on_stderr() as reporter:
            reporter.on_phase(f"Kafka {release}: first start, making the next ones faster")
            with tempfile.TemporaryDirectory(prefix=".training-", dir=cache.directory) as directory:
                archive = Path(directory) / path.name
                is_conclusive = _run_once(cache, release, Path(directory), archive)
                if is_conclusive and _is_archive(archive):
                    archive.replace(path)
                elif is_conclusive:
                    refused.touch()


def _is_archive(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _run_once(cache: Cache, release: str, directory: Path, archive: Path) -> bool:
    """Returns whether the run shows if this Java creates archives.

    It does if the node ended on SIGTERM, after which Java has written all of the archive, or if
    Java refuses the option. It does not if the node did not start or had to be killed.
    """
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
        node.stop(_DUMP_TIMEOUT_S)
    except StackError:
        return node.log.exists() and _NO_SUCH_OPTION in node.log.read_text(errors="replace")
    else:
        return node.exit_code != 128 + signal.SIGKILL
    finally:
        node.kill()
        ports.release()
