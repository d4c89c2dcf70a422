"""Makes the plan of a cluster from its state and a target. Pure."""

from dataclasses import dataclass, replace

from featurewatch.controller.advisories import Advisory
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.releases import Release, releases
from featurewatch.monitor.migration import in_progress, state_name
from featurewatch.monitor.readiness.active_controller import active_controller
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.readiness.upgrade_state import is_kraft
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade.checks import prepare_checks
from featurewatch.monitor.upgrade.kraft import (
    KraftCluster,
    faults_on_the_way,
    kraft_steps,
    levels_after,
)
from featurewatch.monitor.upgrade.nodes import ClusterNodes, nodes_of, roll_order
from featurewatch.monitor.upgrade.patch import patch_steps
from featurewatch.monitor.upgrade.plan import (
    DEFAULT_OPTIONS,
    DEFAULT_SOAK_MS,
    DEFAULT_VALIDATION_MS,
    Levels,
    Mode,
    Options,
    Plan,
    PlanError,
)
from featurewatch.monitor.upgrade.preflight import BRIDGE, PROTOCOL, BrokerSettings, preflight
from featurewatch.monitor.upgrade.zookeeper import (
    ZookeeperCluster,
    bridge_steps,
    migration_steps,
    next_plan_step,
)
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    Role,
)
from featurewatch.tables.image.cluster import Authority


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked for.

    ``version`` is that of this featurewatch, ``now_ms`` the time (ms since the Unix epoch).
    ``running`` is the release of the brokers in ZooKeeper mode, which ZooKeeper does not have
    (empty: not known), ``zookeeper`` its address, and ``settings`` are what the brokers answer of
    their own settings (None: they were not asked). ``earlier`` is the release that nodes in KRaft
    mode ran before the target, for where none does any more (empty: not known). ``validation_ms``
    is how long the cluster runs in KRaft mode before its migration ends. ``patch`` is the patch of
    the target, such as ``4.3.1`` (empty: any): if all nodes run the target already, the plan is a
    roll to it.
    """

    target: Release
    now_ms: int
    version: str
    soak_ms: int = DEFAULT_SOAK_MS
    options: Options = DEFAULT_OPTIONS
    running: str = ""
    zookeeper: str = "HOST:2181"
    settings: BrokerSettings | None = None
    earlier: str = ""
    validation_ms: int = DEFAULT_VALIDATION_MS
    patch: str = ""


def make_plan(state: MonitorState, request: PlanRequest, limits: Limits) -> Plan:
    """The way of a cluster to a release.

    Raises:
        PlanError: There is no plan: the cluster is not known well enough, or is beyond the target.
    """
    image, target = state.image, request.target
    if image.authority is Authority.ZOOKEEPER:
        return _zookeeper_plan(state, request, limits)
    if image.authority is not Authority.LOG or not image.ready or not is_kraft(image):
        raise PlanError(
            "the cluster is not known well enough: a plan needs its metadata log "
            "(--bootstrap-controller, --log-directory or a worker) or its znodes (--zookeeper)"
        )
    if in_progress(image):
        raise PlanError(
            f"a migration from ZooKeeper is in progress ({state_name(image)}): finish it first, "
            "with `featurewatch upgrade status` and the plan that led here"
        )
    nodes = nodes_of(state, limits, request.now_ms)
    if not nodes.nodes:
        raise PlanError("no node is registered in the metadata log")
    order = list(releases())
    known = {node.release for node in nodes.nodes.values() if node.release is not None}
    running = tuple(name for name in order if name in known)
    if running and order.index(running[0]) > order.index(target.name):
        raise PlanError(
            f"all nodes run Kafka {running[0]} or newer: there is no upgrade to {target.name}; "
            "`featurewatch rehearse` shows a downgrade"
        )
    return _kraft_plan(state, request, nodes, running or (target.name,), limits)


def _kraft_plan(
    state: MonitorState,
    request: PlanRequest,
    nodes: ClusterNodes,
    running: tuple[str, ...],
    limits: Limits,
) -> Plan:
    image, target = state.image, request.target
    ordered = roll_order(nodes, active_controller(image).node_id)
    count = len(nodes.controllers)
    levels = dict(sorted(image.features.levels.items()))
    cluster = KraftCluster(
        ordered[:count], ordered[count:], running, levels, limits.upgrade_ms, request.earlier
    )
    is_patch = bool(request.patch) and running == (target.name,)
    if is_patch:
        steps = tuple(patch_steps(cluster, target, request.patch, request.options))
    else:
        steps = tuple(kraft_steps(cluster, target, request.soak_ms, request.options))
    before = {name: level for name, level in levels.items() if name != KRAFT_VERSION}
    return Plan(
        cluster=image.cluster,
        made_ms=request.now_ms,
        version=request.version,
        mode=Mode.KRAFT,
        releases=running,
        target=target.name,
        soak_ms=request.soak_ms,
        before=before,
        after=before if is_patch else levels_after(target, levels),
        controllers=ordered[:count],
        brokers=ordered[count:],
        steps=steps,
        checks=prepare_checks(state, nodes, target),
    )


def plan_faults(plan: Plan, levels: Levels) -> tuple[Advisory, ...]:
    """The known faults that the first step of a plan in KRaft mode names; ``levels`` are the
    finalized ones."""
    target = releases()[plan.target]
    if plan.mode is Mode.KRAFT:
        return faults_on_the_way(plan.releases, target, levels)
    return faults_on_the_way((BRIDGE,), target, _bridge_levels()) if plan.after else ()


def _bridge_levels() -> Levels:
    return {METADATA_VERSION: releases()[BRIDGE].newest(METADATA_VERSION)}


def _zookeeper_plan(state: MonitorState, request: PlanRequest, limits: Limits) -> Plan:
    image, target = state.image, request.target
    order = list(releases())
    brokers = tuple(sorted(key.node_id for key in image.brokers.nodes if key.role is Role.BROKER))
    goes_to_kraft = order.index(target.name) > order.index(BRIDGE)
    release = BRIDGE if goes_to_kraft else target.name
    checks = preflight(image, request.settings, request.running)
    passed = {check.name for check in checks if check.verdict is Verdict.YES}
    running = request.running or (BRIDGE if "software" in passed else "")
    if running and running in order and order.index(running) > order.index(release):
        raise PlanError(f"the brokers run Kafka {running}: there is no upgrade to {release}")
    has_protocol = release == BRIDGE and PROTOCOL in passed
    cluster = ZookeeperCluster(
        image.cluster, brokers, running, request.zookeeper, has_protocol, request.options.read
    )
    steps = [*bridge_steps(cluster, release, request.soak_ms)]
    after: dict[FeatureName, FeatureLevel] = {}
    if goes_to_kraft:
        steps += migration_steps(cluster, request.options, request.validation_ms)
        bridge = _bridge_levels()
        after = levels_after(target, bridge)
        kraft = KraftCluster((), brokers, (BRIDGE,), bridge, limits.upgrade_ms)
        options = replace(
            request.options, read="--bootstrap-controller HOST:PORT", file="plan-kraft.yaml"
        )
        steps.append(next_plan_step(target.name))
        steps += kraft_steps(kraft, target, request.soak_ms, options)
    return Plan(
        cluster=image.cluster,
        made_ms=request.now_ms,
        version=request.version,
        mode=Mode.ZOOKEEPER,
        releases=(running,) if running else (),
        target=target.name,
        soak_ms=request.soak_ms,
        before={},
        after=after,
        controllers=(),
        brokers=brokers,
        steps=tuple(steps),
        checks=checks,
    )
