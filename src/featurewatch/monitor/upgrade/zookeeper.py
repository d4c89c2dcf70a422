"""The way of a cluster in ZooKeeper mode: the bridge release, the migration, and what follows.

Source: Kafka 3.9, "Upgrading" and "ZooKeeper to KRaft Migration", with the way back of each section
("Reverting to ZooKeeper mode During the Migration").
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from featurewatch.monitor.upgrade.plan import Options, Step, StepKind
from featurewatch.monitor.upgrade.preflight import BRIDGE, PROTOCOL
from featurewatch.streams.types import ClusterId, NodeId

_DELETE_ZNODES: Final = (
    "bin/zookeeper-shell.sh {}: `delete /controller`, at once, so that a broker becomes the "
    "controller; then `get /migration` and `delete /migration`"
)
_CHECK_RESTART: Final = "featurewatch upgrade check restart --node ID --wait {}"
_OF_CONTROLLERS: Final = "--bootstrap-controller HOST:PORT"
_AWAY_FROM_KRAFT: Final = (
    "remove zookeeper.metadata.migration.enable, controller.listener.names and "
    "controller.quorum.voters on each broker, and restart the brokers one at a time"
)


@dataclass(frozen=True, slots=True)
class ZookeeperCluster:
    """What the steps follow from; ``zookeeper`` is its address as people write it, and ``running``
    the brokers' release (empty: not known). ``read`` are the options of a command that reads the
    cluster."""

    cluster: ClusterId
    brokers: tuple[NodeId, ...]
    running: str
    zookeeper: str
    has_protocol: bool
    read: str


def bridge_steps(cluster: ZookeeperCluster, release: str, soak_ms: int) -> Iterator[Step]:
    """Software and protocol version of the brokers, in ZooKeeper mode."""
    before = f"Kafka {cluster.running}" if cluster.running else "the release that runs now"
    pinned = cluster.running or "VERSION, the one in use now,"
    if cluster.running != release:
        yield Step(
            "bridge-software",
            StepKind.ROLL,
            f"Restart the brokers on Kafka {release}, one at a time",
            preconditions=(
                f"{PROTOCOL}={pinned} is in the configuration of every broker",
                "before each broker: `featurewatch upgrade check restart` exits with 0",
            ),
            nodes=cluster.brokers,
            release=release,
            commands=(_CHECK_RESTART.format(cluster.read),),
            by_hand=(f"after each check: stop the broker, install Kafka {release}, start it",),
            changes=("the brokers' software",),
            soak_ms=soak_ms,
            way_back=f"restart the brokers on {before}, one at a time",
        )
    if not cluster.has_protocol:
        yield Step(
            "bridge-protocol",
            StepKind.ROLL,
            f"Set {PROTOCOL}={release} on every broker, and restart them one at a time",
            preconditions=(
                f"all brokers run Kafka {release}, and applications work",
                "before each broker: `featurewatch upgrade check restart` exits with 0",
            ),
            nodes=cluster.brokers,
            commands=(_CHECK_RESTART.format(cluster.read),),
            changes=(f"what brokers write to each other and to ZooKeeper is that of {release}",),
            point_of_no_return=True,
            way_back=f"Kafka's upgrade notes have none: before this step {before} can come "
            "back, afterwards not",
        )


def migration_steps(
    cluster: ZookeeperCluster, options: Options, validation_ms: int
) -> Iterator[Step]:
    """From ZooKeeper to KRaft on the bridge release."""
    delete = _DELETE_ZNODES.format(cluster.zookeeper)
    of_both = f"{_OF_CONTROLLERS} {options.change}"
    format_command = (
        f"bin/kafka-storage.sh format --cluster-id={cluster.cluster} --config "
        "config/controller.properties"
    )
    yield Step(
        "controllers",
        StepKind.START,
        f"Start three KRaft controllers of Kafka {BRIDGE} on separate machines",
        preconditions=(
            f"{PROTOCOL}={BRIDGE} on every broker",
            "node.id of each differs from every broker.id",
            "nothing but the migration is changed from here on: no levels, no protocol version",
        ),
        commands=(
            f"bin/zookeeper-shell.sh {cluster.zookeeper} get /cluster/id",
            format_command,
            "bin/kafka-server-start.sh config/controller.properties",
        ),
        by_hand=(
            "controller.properties: process.roles=controller, node.id, "
            "controller.quorum.voters=ID@HOST:9093,ID@HOST:9093,ID@HOST:9093, "
            "controller.listener.names=CONTROLLER, listeners=CONTROLLER://:9093, "
            "zookeeper.metadata.migration.enable=true, "
            f"zookeeper.connect={cluster.zookeeper}, and the brokers' inter.broker.listener.name",
        ),
        changes=("the controllers wait for every broker to register",),
        way_back="stop the controllers and remove their directories; then bin/zookeeper-shell.sh "
        f"{cluster.zookeeper}: `get /migration` and `delete /migration`",
    )
    yield Step(
        "migrate",
        StepKind.ROLL,
        "Switch the brokers to migration, one at a time",
        preconditions=(
            "the controllers run, and one of them is active",
            "before each broker: `featurewatch upgrade check restart` exits with 0",
        ),
        nodes=cluster.brokers,
        by_hand=(
            "server.properties: zookeeper.metadata.migration.enable=true, "
            "controller.quorum.voters and controller.listener.names as on the controllers, the "
            "controllers' listener in listener.security.protocol.map, and broker.id as it is; keep "
            "zookeeper.connect",
        ),
        commands=(
            _CHECK_RESTART.format(of_both),
            f"featurewatch upgrade status --plan {options.file} {of_both}",
        ),
        changes=(
            "with the last broker the metadata is copied to KRaft, and a KRaft controller leads; "
            "it writes to ZooKeeper too",
        ),
        way_back=f"stop the controllers; {delete}; {_AWAY_FROM_KRAFT}",
    )
    yield Step(
        "kraft-brokers",
        StepKind.ROLL,
        "Restart the brokers in KRaft mode, one at a time",
        preconditions=("the migration state is migration: the metadata is copied",),
        nodes=cluster.brokers,
        by_hand=(
            "server.properties: process.roles=broker, node.id in place of broker.id with the same "
            f"number; remove {PROTOCOL}, zookeeper.metadata.migration.enable, every zookeeper.* "
            "setting and control.plane.listener.name; AclAuthorizer becomes "
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        ),
        commands=(
            _CHECK_RESTART.format(of_both),
            f"featurewatch upgrade status --plan {options.file} {of_both}",
        ),
        changes=("brokers read their metadata from KRaft; the controller still writes both",),
        way_back=(
            "on each broker remove process.roles, replace node.id by broker.id, restore "
            f"zookeeper.connect and {PROTOCOL}, keep zookeeper.metadata.migration.enable=true, and "
            f"restart them one at a time; stop the controllers; {delete}; {_AWAY_FROM_KRAFT}"
        ),
    )
    yield Step(
        "validate",
        StepKind.WAIT,
        "Let the cluster run in KRaft mode, while ZooKeeper is still written",
        preconditions=("all brokers run in KRaft mode",),
        commands=(f"featurewatch upgrade status --plan {options.file} {of_both}",),
        changes=("nothing; Kafka's documentation speaks of a week or two",),
        soak_ms=validation_ms,
        way_back="as in the step before",
    )
    yield Step(
        "finalize-migration",
        StepKind.ROLL,
        "End the migration: restart the controllers without it, one at a time",
        preconditions=("all brokers run in KRaft mode, and applications work",),
        by_hand=(
            "controller.properties: remove zookeeper.metadata.migration.enable and every "
            "zookeeper.* setting",
        ),
        commands=(
            _CHECK_RESTART.format(of_both),
            f"featurewatch upgrade status --plan {options.file} {of_both}",
        ),
        changes=("ZooKeeper is not written any more, and can be switched off",),
        point_of_no_return=True,
        way_back="No way back: a finalized migration cannot be reverted.",
    )


def next_plan_step(target: str) -> Step:
    """The plan of the cluster in KRaft mode, whose controllers are known only then."""
    return Step(
        "plan-kraft",
        StepKind.PLAN,
        f"Make the plan from Kafka {BRIDGE} in KRaft mode to {target}; its steps are those below",
        preconditions=("the migration state is post-migration",),
        commands=(
            f"featurewatch upgrade plan --target {target} {_OF_CONTROLLERS} --out plan-kraft.yaml",
        ),
        changes=("nothing",),
        way_back="nothing has changed",
    )
