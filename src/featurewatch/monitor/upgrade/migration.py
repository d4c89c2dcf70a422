"""How far a cluster is on the way from ZooKeeper to KRaft, held against its plan. Pure.

Before the controllers start, only the brokers' settings show anything. From then on the metadata
log does: a broker with migration enabled registers as migrating, a broker in KRaft mode does not,
and a controller registers whether migration is enabled on it (``ZkMigrationReady``).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.releases import releases
from featurewatch.monitor.migration import in_progress, state_name
from featurewatch.monitor.readiness.active_controller import active_controller
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade.checks import (
    alerts_check,
    brokers_check,
    ghosts_check,
    log_check,
    span,
)
from featurewatch.monitor.upgrade.nodes import ClusterNodes
from featurewatch.monitor.upgrade.plan import Plan, Precondition, Step
from featurewatch.monitor.upgrade.preflight import (
    BRIDGE,
    PROTOCOL,
    BrokerSettings,
    preflight,
    release_of_protocol,
)
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage

RULES: Final = frozenset({"migration-in-progress", "migration-incomplete"})
"""Rules whose alerts say that a migration runs: no reason not to continue it."""


class Asked(NamedTuple):
    """What ZooKeeper and the log do not have: ``settings`` as brokers answer them (None: no broker
    was asked), and ``running``, the release that a person says all brokers run (empty: not
    known)."""

    settings: BrokerSettings | None = None
    running: str = ""


NOT_ASKED: Final = Asked()

_ROLLS: Final = ("migrate", "kraft-brokers", "finalize-migration")
_OF_ZOOKEEPER: Final = frozenset({"brokers", "controller", "migration"})
"""The checks of the preflight that have to hold before each step in ZooKeeper mode."""


def is_migration_step(step: Step) -> bool:
    """Whether the step belongs to the way to KRaft, and not to the upgrade after it."""
    return step.id.startswith("bridge-") or step.id in (
        *_ROLLS,
        "controllers",
        "validate",
        "plan-kraft",
    )


def is_step_done(
    step: Step, plan: Plan, state: MonitorState, nodes: ClusterNodes, asked: Asked, now_ms: int
) -> bool | None:
    """Whether a step on the way to KRaft is done; None where nothing shows it."""
    image = state.image
    if image.authority is not Authority.LOG:
        left = without_protocol(plan, image, asked)
        if step.id == "bridge-software":
            return True if asked.running == _bridge(plan) or left == () else None
        return None if left is None else step.id == "bridge-protocol" and not left
    name = state_name(image)
    before_log = step.id.startswith("bridge-") or step.id == "controllers"
    match name:
        case "pre-migration":
            return before_log
        case "migration":
            if step.id == "kraft-brokers":
                return not nodes_left(step, plan, state)
            if step.id == "validate":
                return validation_check(step, nodes, now_ms).verdict is Verdict.YES
            return before_log or step.id == "migrate"
        case "post-migration":
            return step.id != "finalize-migration" or not nodes_left(step, plan, state)
        case _:
            return False


def nodes_left(
    step: Step, plan: Plan, state: MonitorState, asked: Asked = NOT_ASKED
) -> tuple[NodeId, ...]:
    """The nodes that a step has still to restart, in order; the active controller is the last."""
    image = state.image
    if image.authority is not Authority.LOG:
        left = without_protocol(plan, image, asked) if step.id == "bridge-protocol" else ()
        return left or ()
    if step.id == "finalize-migration":
        active = active_controller(image).node_id
        enabled = [
            key.node_id
            for key, node in image.nodes.nodes.items()
            if key.role is Role.CONTROLLER and node.migrating
        ]
        return tuple(sorted(enabled, key=lambda node_id: (node_id == active, node_id)))
    left_brokers = []
    for broker in brokers_of(plan, image):
        node = image.nodes.get(NodeKey(Role.BROKER, broker))
        if node is None or (step.id == "kraft-brokers" and node.migrating):
            left_brokers.append(broker)
    return tuple(left_brokers) if step.id in _ROLLS else ()


def without_protocol(plan: Plan, image: ClusterImage, asked: Asked) -> tuple[NodeId, ...] | None:
    """The brokers without the bridge release's protocol; None: one of them did not answer."""
    brokers, settings = brokers_of(plan, image), asked.settings
    if settings is None or not brokers or any(broker not in settings for broker in brokers):
        return None
    bridge = _bridge(plan)
    return tuple(
        broker
        for broker in brokers
        if release_of_protocol(settings[broker].get(PROTOCOL)) != bridge
    )


def brokers_of(plan: Plan, image: ClusterImage) -> tuple[NodeId, ...]:
    """The brokers of the plan, and those that joined since."""
    known = (*image.nodes.nodes, *image.brokers.nodes)
    joined = {key.node_id for key in known if key.role is Role.BROKER}
    return (*plan.brokers, *sorted(joined - {*plan.brokers}))


def progress_of(
    step: Step, plan: Plan, state: MonitorState, nodes: ClusterNodes, asked: Asked, now_ms: int
) -> str:
    """How far a step is, in a few words; empty where nothing shows it."""
    image = state.image
    if image.authority is not Authority.LOG:
        left = without_protocol(plan, image, asked)
        if step.id != "bridge-protocol" or left is None:
            return ""
        return _count(len(left), len(brokers_of(plan, image)), "broker")
    if step.id == "validate":
        return validation_check(step, nodes, now_ms).text
    if step.id == "finalize-migration":
        controllers = sum(key.role is Role.CONTROLLER for key in image.nodes.nodes)
        return _count(len(nodes_left(step, plan, state)), controllers, "controller")
    if step.id in _ROLLS:
        return _count(len(nodes_left(step, plan, state)), len(brokers_of(plan, image)), "broker")
    return ""


def _count(left: int, of: int, noun: str) -> str:
    return f"{of - left} of {of} {noun}{'' if of == 1 else 's'}"


def step_checks(
    step: Step,
    plan: Plan,
    state: MonitorState,
    nodes: ClusterNodes,
    asked: Asked,
    now_ms: int,
) -> Iterator[Precondition]:
    """What must hold before the current step on the way to KRaft continues."""
    image = state.image
    if image.authority is not Authority.LOG:
        yield from _in_zookeeper(step, plan, image, asked)
        return
    yield log_check(state, now_ms)
    yield ghosts_check(state, nodes, releases()[BRIDGE])
    yield brokers_check(nodes)
    if step.id == "migrate" and not nodes_left(step, plan, state):
        yield Precondition(
            "migration",
            Verdict.NO,
            "all brokers are registered, and their metadata is not copied yet",
            "wait; the log of the active controller shows what it waits for",
            waits=True,
        )
    if step.id == "validate":
        yield validation_check(step, nodes, now_ms)
    yield alerts_check(state, RULES)


def _in_zookeeper(
    step: Step, plan: Plan, image: ClusterImage, asked: Asked
) -> Iterator[Precondition]:
    found = preflight(image, asked.settings, asked.running)
    if step.id == "controllers" and in_progress(image):
        yield Precondition(
            "log",
            Verdict.UNKNOWN,
            "the controllers have started: their log shows how far the migration is",
            "pass --bootstrap-controller instead of --zookeeper; if the migration was given up, "
            "get /migration and delete it with zookeeper-shell.sh",
        )
        return
    yield from (check for check in found if check.name in _OF_ZOOKEEPER)
    if step.id == "bridge-software":
        yield Precondition(
            "software",
            Verdict.UNKNOWN,
            "ZooKeeper does not have the brokers' release",
            f"when every broker runs it, pass --running {_bridge(plan)}",
        )
    elif without_protocol(plan, image, asked) is None:
        yield Precondition(
            PROTOCOL,
            Verdict.UNKNOWN,
            "it is not known of every broker",
            "add --bootstrap-server, so that the brokers are asked for their settings",
        )


def validation_check(step: Step, nodes: ClusterNodes, now_ms: int) -> Precondition:
    """Whether all brokers have run in KRaft mode for as long as the plan says."""
    registered = [nodes.nodes[broker].registered_ms for broker in nodes.brokers]
    if not registered or min(registered) < 0:
        text = "since when all brokers run in KRaft mode is not known"
        return Precondition("validation", Verdict.UNKNOWN, text)
    lasted = max(now_ms - max(registered), 0)
    text = f"all brokers have run in KRaft mode for {span(lasted)} of {span(step.soak_ms)}"
    if lasted >= step.soak_ms:
        return Precondition("validation", Verdict.YES, text)
    remedy = f"wait {span(step.soak_ms - lasted)}"
    return Precondition("validation", Verdict.NO, text, remedy, waits=True)


def _bridge(plan: Plan) -> str:
    """The release up to which the cluster stays in ZooKeeper mode."""
    return BRIDGE if plan.step("controllers") else plan.target
