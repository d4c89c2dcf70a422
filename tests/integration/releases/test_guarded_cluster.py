"""Every way to watch a cluster, with the rights that security.md promises, on each release.

Controllers and brokers are apart, their listeners have their own names, TLS and SASL, with other
logins for controllers than for brokers, and an authorizer runs on each node.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.config.source_settings import kraft_settings, node_logins
from featurewatch.cli.runtime.cluster_id import find_cluster_id
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError, read_image
from featurewatch.common.private_files import write_private
from featurewatch.stack.java.jars import Cache, parse_release
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK, Ports
from featurewatch.streams.events import SourceState
from featurewatch.streams.kraft.source import KraftSettings
from featurewatch.streams.types import ClusterId, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority
from tests.conftest import Certificates
from tests.integration.kraft.support import (
    WANTED,
    LogSink,
    create_topics,
    running,
    until,
    until_topic,
)
from tests.process_logs import started

pytestmark = [pytest.mark.stack, pytest.mark.releases("4.1.2")]

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
CONTROLLERS, BROKERS = (1, 2, 3), (11, 12)


@dataclass
class Guarded:
    """A running cluster, and the addresses of its listeners that require a login."""

    cluster: Cluster
    controllers: dict[int, str]
    brokers: dict[int, str]
    directory: Path
    release: tuple[int, int, int]

    def section(self, ways: str, watcher: str = "watcher", cluster_id: str = "") -> ClusterSection:
        """The settings of a cluster that is watched in some ways, with a login for each role."""
        polled = ",".join(f"{id_}@{address}" for id_, address in self.controllers.items())
        given = {
            "controllers": ",".join(self.controllers.values()),
            "servers": ",".join(self.brokers.values()),
            "polled_controllers": polled,
        }
        return ClusterSection(
            cluster_id=cluster_id,
            command_config=self.directory / "reader.properties",
            controllers_config=self.directory / f"{watcher}.properties",
            **{way: given[way] for way in ways.split()},  # type: ignore[arg-type]
        )


@pytest.fixture(scope="module")
def guarded(
    release: str,
    stack_cache: Cache,
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Guarded]:
    """The cluster; ``watcher`` has CLUSTER_ACTION, ``reader`` and ``nobody`` have no right."""
    directory = tmp_path_factory.mktemp("guarded")
    ports = Ports()
    own = {
        **{id_: Addresses(None, ports.reserve()) for id_ in CONTROLLERS},
        **{id_: Addresses(ports.reserve(), None) for id_ in BROKERS},
    }
    quorum = {id_: ports.reserve() for id_ in CONTROLLERS}
    clients = {id_: ports.reserve() for id_ in BROKERS}
    common = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "QUORUM:SASL_SSL,CLIENTS:SASL_SSL",
    }
    nodes = [
        NodeSpec(
            id_,
            release,
            Roles.CONTROLLER,
            {
                "listeners": f"CONTROLLER://{LOOPBACK}:{own[id_].controller},"
                f"QUORUM://{LOOPBACK}:{quorum[id_]}",
                "controller.listener.names": "CONTROLLER,QUORUM",
                "listener.name.quorum.plain.sasl.jaas.config": f"{JAAS} "
                'user_watcher="of-watcher" user_nobody="of-nobody";',
            },
        )
        for id_ in CONTROLLERS
    ] + [
        NodeSpec(
            id_,
            release,
            Roles.BROKER,
            {
                "listeners": f"PLAINTEXT://{LOOPBACK}:{own[id_].broker},"
                f"CLIENTS://{LOOPBACK}:{clients[id_]}",
                "listener.name.clients.plain.sasl.jaas.config": f'{JAAS} user_reader="of-reader";',
            },
        )
        for id_ in BROKERS
    ]
    for user in ("watcher", "nobody", "reader"):
        write_private(
            directory / f"{user}.properties",
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
            f"sasl.username={user}\nsasl.password=of-{user}\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={certificates.ca}\n",
        )
    cluster = Cluster(
        ClusterSpec(nodes, properties=common),
        directory / "cluster",
        cache=stack_cache,
        temporary=True,
        addresses=own,
    )
    with started(cluster):
        _grant_cluster_action(cluster)
        yield Guarded(
            cluster,
            {id_: f"{LOOPBACK}:{port}" for id_, port in quorum.items()},
            {id_: f"{LOOPBACK}:{port}" for id_, port in clients.items()},
            directory,
            parse_release(release),
        )
    ports.release()
    shutil.rmtree(directory, ignore_errors=True)


def _grant_cluster_action(cluster: Cluster) -> None:
    """The rights that docs/explanation/security.md grants to a source on a watched cluster."""
    binding = AclBinding(
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        "User:watcher",
        "*",
        AclOperation.CLUSTER_ACTION,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.create_acls([binding]).values():
        future.result()


def _nodes(guarded: Guarded, ways: str) -> tuple[Authority, set[NodeKey]]:
    """The authority and the nodes of the cluster as it is read once, without its id."""
    image = read_image(guarded.section(ways))
    assert image.cluster == guarded.cluster.cluster_id
    assert image.ready
    assert image.features.levels
    return image.authority, set(image.nodes.nodes)


def _log_settings(guarded: Guarded, section: ClusterSection) -> KraftSettings:
    """How the log is followed, with the records of topics."""
    cluster_id = ClusterId(guarded.cluster.cluster_id)
    settings = kraft_settings(section, cluster_id, node_logins(section).controllers)
    return replace(settings, wanted=WANTED, heartbeat_ms=500)


ALL_BROKERS = {NodeKey(Role.BROKER, NodeId(id_)) for id_ in BROKERS}
ALL_CONTROLLERS = {NodeKey(Role.CONTROLLER, NodeId(id_)) for id_ in CONTROLLERS}


def test_the_log_is_followed_with_cluster_action_alone(guarded: Guarded) -> None:
    """The cluster's id comes from a broker that the log names: controllers do not tell it."""
    authority, nodes = _nodes(guarded, "controllers")
    assert authority is Authority.LOG
    assert nodes >= ALL_BROKERS
    assert (nodes >= ALL_CONTROLLERS) == (guarded.release >= (3, 7, 0))


def test_brokers_are_polled_without_any_right(guarded: Guarded) -> None:
    """They list each other; controllers are not listed, since that takes DESCRIBE."""
    assert _nodes(guarded, "servers") == (Authority.ANSWERS, ALL_BROKERS)


def test_controllers_are_polled_without_any_right(guarded: Guarded) -> None:
    """With their ids, and beside the brokers."""
    everything = ALL_BROKERS | ALL_CONTROLLERS
    assert _nodes(guarded, "servers polled_controllers") == (Authority.ANSWERS, everything)


def test_both_sources_of_a_cluster_have_their_own_logins(guarded: Guarded) -> None:
    """The log is followed and the brokers are polled; what the log says counts."""
    authority, nodes = _nodes(guarded, "controllers servers")
    assert authority is Authority.LOG
    assert nodes >= ALL_BROKERS


def test_a_refusal_of_controllers_is_logged_beside_brokers_that_answer(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    """The image is that of the brokers, and what was not read is named."""
    image = read_image(guarded.section("controllers servers", "nobody"))
    assert (image.authority, image.ready) == (Authority.ANSWERS, True)
    assert "kraft was not read" in caplog.text
    assert "grant CLUSTER_ACTION on the cluster" in caplog.text


async def test_the_log_is_followed_live_over_a_guarded_listener(guarded: Guarded) -> None:
    """Also where the leader is another one than the first controller of the settings."""
    sink = LogSink()
    async with running(_log_settings(guarded, guarded.section("controllers")), sink):
        await until(sink.following)
        await create_topics(guarded.cluster, ["live"])
        await until_topic(sink, "live")
    sink.assert_in_order()
    assert sink.gaps == []


async def test_a_login_without_a_right_reads_what_to_grant(guarded: Guarded) -> None:
    """While the cluster's id is searched, and by the source where it is set."""
    section = guarded.section("controllers", "nobody")
    search = await find_cluster_id(section, node_logins(section))
    assert search.cluster is None
    assert "grant CLUSTER_ACTION on the cluster" in search.reason
    assert "ALTER" not in search.reason
    sink = LogSink()
    async with running(_log_settings(guarded, section), sink):
        await until(lambda: sink.statuses and sink.statuses[-1].state is SourceState.STALLED)
    assert "grant CLUSTER_ACTION on the cluster" in sink.statuses[-1].detail


async def test_brokers_that_do_not_let_us_in_are_in_the_reason(guarded: Guarded) -> None:
    """The log is read, and its brokers refuse the login of the controllers."""
    section = guarded.section("controllers").model_copy(
        update={"command_config": guarded.directory / "watcher.properties"}
    )
    search = await find_cluster_id(section, node_logins(section))
    assert search.cluster is None
    assert "refused the SASL login" in search.reason
    assert "set cluster_id" in search.reason
    assert "grant CLUSTER_ACTION" not in search.reason


def test_a_login_of_the_wrong_role_is_one_clear_line(guarded: Guarded) -> None:
    """The brokers' login is refused by the controllers."""
    with pytest.raises(ClusterNotReadError, match="refused the SASL login"):
        read_image(guarded.section("polled_controllers", "reader"))


@pytest.mark.parametrize("node_id", [CONTROLLERS[0], BROKERS[0]])
async def test_a_directory_is_followed_without_a_login(guarded: Guarded, node_id: int) -> None:
    """Of a controller and of a broker."""
    section = ClusterSection(log_directory=guarded.cluster.node(node_id).data)
    name = f"seen-by-{node_id}"
    sink = LogSink()
    async with running(_log_settings(guarded, section), sink):
        await create_topics(guarded.cluster, [name])
        await until_topic(sink, name)
        await until(sink.following)
    sink.assert_in_order()
    assert sink.gaps == []
