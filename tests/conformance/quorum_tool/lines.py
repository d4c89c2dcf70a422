"""Invocations that are compared: arguments after those that name the cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from featurewatch.common.private_files import write_private

DESCRIBED: Final = (
    "describe --status",
    "describe --replication",
    "describe --replication --human-readable",
)
MISTAKEN: Final = (
    "describe",
    "describe --status --replication",
    "describe --human-readable",
    "describe --status --human-readable",
    "describe --status --replication --human-readable",
    "add-controller",
    "add-controller --dry-run",
    "--command-config /nowhere/controller.properties add-controller",
)
DIRECTORY: Final = "_4CqAHGGRCmGJwvRRRgT9w"
WRONG_DIRECTORIES: Final = (
    "",
    "A",
    "AA",
    "AAAA",
    "AAAAA",
    "AA==",
    "AA=A",
    "AA==A",
    "A===",
    "====",
    "!AAA",
    "AAA AAA",
    "aé",
    "a€",
    "_4CqAHGGRCmGJwvRRRgT9",
    "_4CqAHGGRCmGJwvRRRgT9w=",
    "_4CqAHGGRCmGJwvRRRgT9w==x",
    "_4CqAHGGRCmGJwvRRRgT9wAA",
    "_4CqAHGGRCmGJwvRRRgT9wAAAA",
)
"""Of ``--controller-directory-id``."""

_GOOD: Final = {
    "process.roles": "controller",
    "node.id": "7",
    "listeners": "CONTROLLER://host-7:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "%/good",
}
_META: Final = {"version": "1", "node.id": "7", "directory.id": DIRECTORY}

CONFIGURATIONS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "good": {},
    "combined": {
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    },
    "id-missing": {"node.id": None},
    "id-text": {"node.id": "seven"},
    "id-empty": {"node.id": ""},
    "id-large": {"node.id": "2147483648"},
    "id-negative": {"node.id": "-1"},
    "roles-missing": {"process.roles": None},
    "roles-broker": {"process.roles": "broker"},
    "directories-missing": {"log.dirs": None},
    "metadata-directory": {"log.dirs": "%/none", "metadata.log.dir": "%/good"},
    "two-directories": {"log.dirs": "%/good,%/none"},
    "directory-none": {"log.dirs": "%/none"},
    "directory-without-id": {"log.dirs": "%/without-id"},
    "directory-damaged": {"log.dirs": "%/damaged"},
    "directory-of-version-2": {"log.dirs": "%/version-2"},
    "directory-without-node": {"log.dirs": "%/without-node"},
    "directory-of-zookeeper-mode": {"log.dirs": "%/zookeeper"},
    "names-missing": {"controller.listener.names": None},
    "names-other": {"controller.listener.names": "QUORUM"},
    "names-lower": {"controller.listener.names": "controller", "listeners": "controller://h:1"},
    "names-two": {
        "controller.listener.names": "QUORUM,CONTROLLER",
        "listeners": "CONTROLLER://h:1 , QUORUM://h:2",
    },
    "names-twice": {"controller.listener.names": "CONTROLLER,CONTROLLER"},
    "names-with-space": {"controller.listener.names": "CONTROLLER, QUORUM"},
    "names-empty": {"controller.listener.names": ""},
    "listeners-missing": {"listeners": None},
    "listeners-wrong": {"listeners": "CONTROLLER:9093"},
    "listeners-without-port": {"listeners": "CONTROLLER://h"},
    "listeners-port-large": {"listeners": "CONTROLLER://h:99999999999"},
    "listeners-no-name": {"listeners": "://h:1"},
    "listeners-ipv6": {"listeners": "CONTROLLER://[::1]:9093"},
    "advertised": {"advertised.listeners": "CONTROLLER://other:1"},
    "advertised-empty-host": {"advertised.listeners": "CONTROLLER://:1"},
}
"""Of a controller that is added: what differs from one whose configuration is right; % is the
directory of the log directories."""

_METAS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "good": {},
    "without-id": {"directory.id": None},
    "damaged": {"directory.id": "short"},
    "version-2": {"version": "2"},
    "without-node": {"node.id": None},
    "zookeeper": {"version": "0", "node.id": None},
}


def invocation_count() -> int:
    """How many invocations `test_quorum_texts` compares on each release."""
    through_both = len(DESCRIBED) + len(MISTAKEN) + len(("removal", "addition"))
    return 2 * through_both + len(("negative id",)) + len(WRONG_DIRECTORIES) + len(CONFIGURATIONS)


def write_configurations(directory: Path, cluster_id: str) -> dict[str, Path]:
    """The files of `CONFIGURATIONS` by their names, and the log directories that they name."""
    meta = {**_META, "cluster.id": cluster_id}
    for name, changes in _METAS.items():
        (directory / name).mkdir()
        (directory / name / "meta.properties").write_text(_text({**meta, **changes}, directory))
    files = {}
    for name, changes in CONFIGURATIONS.items():
        files[name] = directory / f"{name}.properties"
        write_private(files[name], _text({**_GOOD, **changes}, directory))
    return files


def _text(properties: Mapping[str, str | None], directory: Path) -> str:
    present = {key: value for key, value in properties.items() if value is not None}
    return "".join(
        f"{key}={value.replace('%', str(directory))}\n" for key, value in present.items()
    )
