"""The settings and logins of the sources of a configured cluster."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from featurewatch.cli.config.client_config import (
    as_usage_errors,
    read_client_config,
    read_properties,
)
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.errors import UsageError
from featurewatch.kafka.address import parse_addresses
from featurewatch.kafka.client_config.keys import check_zookeeper_keys
from featurewatch.kafka.security import Security
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.kraft.directory.files import cluster_id_of
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from featurewatch.streams.kraft.records.selection import (
    ALL_RECORDS,
    DEFAULT_RECORD_TYPES,
    FOLLOWED_SETTINGS,
    OPERATIONS_RECORD_TYPES,
)
from featurewatch.streams.kraft.source import KraftSettings
from featurewatch.streams.types import ClusterId
from featurewatch.streams.zookeeper.paths import WatchScope
from featurewatch.streams.zookeeper.settings import ZookeeperLogin, ZookeeperSettings


class NodeLogins(NamedTuple):
    """TLS and SASL towards the nodes of a cluster, by role."""

    brokers: Security
    controllers: Security


def check_directory(directory: Path, cluster_id: str) -> None:
    """Raises `UsageError` if there is no log directory, or nothing gives its cluster's id.

    ``cluster_id`` is the configured id, or empty.
    """
    if not directory.is_dir():
        raise UsageError(
            f"there is no directory {directory}: give the mounted __cluster_metadata-0"
        )
    if not cluster_id and cluster_id_in_files(directory) is None:
        raise UsageError(
            f"{directory} has no meta.properties with the cluster's id beside it: is it a "
            "__cluster_metadata-0? If so, pass --cluster-id, or set cluster_id"
        )


def cluster_id_in_files(directory: Path) -> ClusterId | None:
    """The id in the ``meta.properties`` beside a log, or None; raises `UsageError`."""
    try:
        cluster_id = cluster_id_of(directory)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from None
    return ClusterId(cluster_id) if cluster_id is not None else None


def kraft_settings(
    cluster: ClusterSection, cluster_id: ClusterId, security: Security
) -> KraftSettings:
    """The settings of the source for the metadata log of a cluster."""
    record_types = OPERATIONS_RECORD_TYPES if cluster.operations else DEFAULT_RECORD_TYPES
    wanted = ALL_RECORDS if cluster.records == "all" else record_types
    settings = KraftSettings(
        cluster_id,
        wanted=wanted,
        read_settings=FOLLOWED_SETTINGS if cluster.operations else (),
        max_snapshot_bytes=cluster.max_snapshot_bytes,
    )
    if cluster.log_directory is not None:
        return replace(settings, log_directory=cluster.log_directory)
    quorum = QuorumSettings(cluster_id, parse_addresses(cluster.controllers), security)
    return replace(settings, quorum=quorum)


def zookeeper_settings(cluster: ClusterSection) -> ZookeeperSettings:
    """The settings of the source for the znodes of a cluster; raises `UsageError`."""
    login = ZookeeperLogin()
    if (file := cluster.zookeeper_config) is not None:
        properties = read_properties(file)
        with as_usage_errors():
            properties.checked(check_zookeeper_keys)
            login = properties.checked(ZookeeperLogin.from_properties)
    everything = cluster.records == "all"
    return ZookeeperSettings(
        cluster.zookeeper,
        cluster=ClusterId(cluster.cluster_id) if cluster.cluster_id else None,
        login=login,
        wanted=WatchScope(partitions=everything, tasks=everything),
        max_frame_bytes=cluster.max_zookeeper_frame_bytes,
    )


def api_versions_settings(
    cluster: ClusterSection, cluster_id: ClusterId, logins: NodeLogins
) -> ApiVersionsSettings:
    """The settings of the source that polls the nodes of a cluster."""
    return ApiVersionsSettings.parse(
        cluster.servers,
        cluster.polled_controllers,
        cluster=cluster_id,
        security=logins.brokers,
        controllers_security=logins.controllers,
    )


def node_logins(cluster: ClusterSection) -> NodeLogins:
    """TLS and SASL towards a cluster's nodes; raises as `client_security` does."""
    brokers = client_security(cluster.command_config)
    if cluster.controllers_config is None:
        return NodeLogins(brokers, brokers)
    return NodeLogins(brokers, client_security(cluster.controllers_config))


def client_security(file: Path | None) -> Security:
    """TLS and SASL by a properties file.

    Raises:
        UsageError: The file cannot be read, a key is misspelt, or a value cannot be used.
    """
    return read_client_config(file).security
