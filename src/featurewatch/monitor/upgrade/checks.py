"""What must hold of a cluster in KRaft mode before it is upgraded, and before it is finalized."""

from collections.abc import Iterator
from typing import Final

from featurewatch.common.id_runs import format_ids
from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.releases import Release, release_of, releases
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import LEARN
from featurewatch.monitor.readiness.divergence import divergences
from featurewatch.monitor.readiness.report import assess_readiness
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.readiness.unregistration import (
    finalized_metadata_version,
    ghost_controller_advice,
    ghost_controller_remedy,
    unregister_command,
)
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade.nodes import (
    ClusterNodes,
    is_log_current,
    soaking_since_ms,
)
from featurewatch.monitor.upgrade.plan import Plan, Precondition
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, Role
from featurewatch.tables.image.nodes import Node

_HARMLESS: Final = frozenset(
    {
        "finalization-forgotten",
        "finalization-partial",
        "upgrade-blocked",
        "preferred-leader-lost",
        "ghost-registration",
    }
)
"""Rules whose alerts finalizing resolves, which say nothing against it, or which its own check
covers."""

_MOST_NAMED: Final = 5
_OLD_MS: Final = 60_000
"""A source reports every three seconds that it follows."""


def prepare_checks(
    state: MonitorState, nodes: ClusterNodes, target: Release
) -> tuple[Precondition, ...]:
    """What must hold before the first node is restarted on ``target``."""
    return (
        log_check(state),
        _releases(nodes, target),
        *_levels(state, target),
        ghosts_check(state, nodes, target),
        brokers_check(nodes),
        alerts_check(state),
    )


def finalize_checks(
    plan: Plan, state: MonitorState, nodes: ClusterNodes, limits: Limits, now_ms: int
) -> tuple[Precondition, ...]:
    """What must hold at the moment at which levels are finalized."""
    return (
        log_check(state, now_ms),
        on_target(nodes, plan.target),
        ghosts_check(state, nodes, release_of(plan.target)),
        brokers_check(nodes),
        soak_check(plan, state, nodes, now_ms),
        _ranges(state, nodes, now_ms),
        alerts_check(state),
        _controller(plan, state, limits, now_ms),
    )


def log_check(state: MonitorState, now_ms: int = -1) -> Precondition:
    """Whether the metadata log was read to its end, and not long ago.

    ``now_ms`` is the time (ms since the Unix epoch); -1: the age of a worker's state does not
    count.
    """
    image = state.image
    age_ms = now_ms - max((at.time_ms for at in image.sources.read.values()), default=now_ms)
    if now_ms >= 0 and age_ms > _OLD_MS:
        return Precondition(
            "log",
            Verdict.UNKNOWN,
            f"the worker's state is {span(age_ms)} old",
            "check the worker and its sources, or pass --bootstrap-controller",
            waits=True,
        )
    if is_log_current(image):
        return Precondition("log", Verdict.YES, "the metadata log was read to its end")
    if image.incomplete:
        text = f"no known release has the record {', '.join(image.incomplete)} in the log: {LEARN}"
        return Precondition("log", Verdict.UNKNOWN, text)
    return Precondition(
        "log",
        Verdict.UNKNOWN,
        "the metadata log is not read to its end, or no longer followed",
        "pass --bootstrap-controller, or check the source of this cluster",
        waits=True,
    )


def _releases(nodes: ClusterNodes, target: Release) -> Precondition:
    order = list(releases())
    unknown = [node for node in nodes.nodes.values() if node.release is None]
    newer = [
        node
        for node in nodes.nodes.values()
        if node.is_newer
        or (node.release is not None and order.index(node.release) > order.index(target.name))
    ]
    if newer:
        named = ", ".join(f"{node} ({node.software})" for node in newer[:_MOST_NAMED])
        return Precondition(
            "releases",
            Verdict.NO,
            f"{named}: newer than Kafka {target.name}",
            "plan for a release that is no older than any node",
        )
    if unknown:
        named = ", ".join(f"{node} ({node.software})" for node in unknown[:_MOST_NAMED])
        return Precondition(
            "releases",
            Verdict.UNKNOWN,
            f"the release of {named} is not known",
            "add --bootstrap-server, so that nodes are asked; controllers do not register below "
            "metadata.version 15",
        )
    names = sorted({node.release or "" for node in nodes.nodes.values()}, key=order.index)
    return Precondition("releases", Verdict.YES, f"nodes run Kafka {', '.join(names)}")


def _levels(state: MonitorState, target: Release) -> Iterator[Precondition]:
    """Whether nodes of the target start with the levels that are finalized now."""
    levels = state.image.features.levels
    above = {
        name: level for name, level in levels.items() if level > target.supported.of(name).maximum
    }
    for name, level in sorted(above.items()):
        yield Precondition(
            "levels",
            Verdict.NO,
            f"{name} {level_name(name, level)} is finalized: Kafka {target.name} does not start",
            "plan for a newer release",
        )
    current = levels.get(METADATA_VERSION, FeatureLevel(0))
    if not current:
        yield Precondition(
            "levels",
            Verdict.UNKNOWN,
            "metadata.version is not in the log, as before 3.3-IV0",
            "upgrade to Kafka 3.9 first, as Kafka's upgrade notes say",
        )
    elif not above:
        text = f"metadata.version is {level_name(METADATA_VERSION, current)}"
        yield Precondition("levels", Verdict.YES, text)


def ghosts_check(state: MonitorState, nodes: ClusterNodes, target: Release) -> Precondition:
    """Whether every registration has a living node; the remedy leads to the target's levels."""
    if not nodes.ghosts:
        return Precondition("ghosts", Verdict.YES, "every registration has a living node")
    first, finalized = nodes.ghosts[0], finalized_metadata_version(state.image)
    if first.role is Role.BROKER:
        remedy = f"if it was decommissioned: {unregister_command(first.role, first.node_id)}"
    else:
        node = state.image.nodes.get(first)
        known = node.capabilities.ranges.get(METADATA_VERSION) if node else None
        supported, wanted = known.maximum if known else None, target.newest(METADATA_VERSION)
        if supported is not None and supported >= wanted:
            remedy = ghost_controller_advice(first.node_id, finalized, supported)
        else:
            software = f"Kafka {target.name}"
            remedy = ghost_controller_remedy(first.node_id, software, finalized, wanted)
        if not state.image.answers.nodes:
            remedy = f"add --bootstrap-server, which asks whether it runs; else {remedy}"
    names = ", ".join(f"{key.role} {key.node_id}" for key in nodes.ghosts[:_MOST_NAMED])
    return Precondition("ghosts", Verdict.NO, f"registered without a living node: {names}", remedy)


def brokers_check(nodes: ClusterNodes) -> Precondition:
    """Whether every broker serves."""
    fenced = [node.node_id for node in nodes.nodes.values() if node.fenced]
    if fenced:
        text = f"fenced: broker {format_ids(fenced)}"
        return Precondition("brokers", Verdict.NO, text, "start it", waits=True)
    return Precondition("brokers", Verdict.YES, "no broker is fenced")


def alerts_check(state: MonitorState, expected: frozenset[str] = frozenset()) -> Precondition:
    """Whether an alert fires that says something against the next step.

    Alerts of the rules ``expected`` do not.
    """
    firing = sorted(
        (
            alert
            for alerts in state.firing.values()
            for alert in alerts
            if alert.rule not in _HARMLESS | expected
        ),
        key=lambda alert: (alert.severity is not Severity.CRITICAL, alert.id),
    )
    if not firing:
        return Precondition("alerts", Verdict.YES, "no alert fires that speaks against it")
    more = f" (and {len(firing) - 1} more)" if len(firing) > 1 else ""
    text = f"{firing[0].rule} fires: {firing[0].summary}{more}"
    return Precondition("alerts", Verdict.NO, text, "featurewatch alerts", waits=True)


def on_target(nodes: ClusterNodes, target: str) -> Precondition:
    """Whether every living node runs the release."""
    on = nodes.on(target)
    others = [node for node_id, node in nodes.nodes.items() if node_id not in on]
    if not others and nodes.nodes:
        text = f"all {len(on)} nodes run Kafka {target}"
        return Precondition("nodes", Verdict.YES, text)
    unknown = all(node.release is None and not node.is_newer for node in others)
    named = ", ".join(f"{node} ({node.software})" for node in others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return Precondition(
        "nodes",
        Verdict.UNKNOWN if unknown else Verdict.NO,
        f"not known to run Kafka {target}: {named}{more}",
        "upgrade them first" if not unknown else "add --bootstrap-server, so that nodes are asked",
        waits=True,
    )


def soak_check(plan: Plan, state: MonitorState, nodes: ClusterNodes, now_ms: int) -> Precondition:
    """Whether all nodes have run the release for as long as the plan says."""
    if len(nodes.on(plan.target)) < len(nodes.nodes):
        text = f"it begins when all nodes run Kafka {plan.target}"
        return Precondition("soak", Verdict.NO, text, waits=True)
    since = soaking_since_ms(state, nodes)
    if since < 0:
        return Precondition(
            "soak",
            Verdict.UNKNOWN,
            f"since when all nodes run Kafka {plan.target} is not known",
            "run a worker, which records it; or pass --accept soak once it has been long enough",
        )
    soaked = max(now_ms - since, 0)
    text = f"all nodes have run Kafka {plan.target} for {span(soaked)} of {span(plan.soak_ms)}"
    enough = soaked >= plan.soak_ms
    return Precondition(
        "soak",
        Verdict.YES if enough else Verdict.NO,
        text,
        "" if enough else f"wait {span(plan.soak_ms - soaked)}",
        waits=True,
    )


def _ranges(state: MonitorState, nodes: ClusterNodes, now_ms: int) -> Precondition:
    """Whether the ranges of every node are known, and nodes answer what they registered.

    A registration has the ranges of the software that registered, and Kafka's controller decides by
    it; a node that did not register has to be asked.
    """
    differing = divergences(state.image, now_ms)
    if differing:
        first = differing[0]
        more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
        text = f"{first.role} {first.node_id} {first.difference}{more}"
        return Precondition("ranges", Verdict.NO, text, "restart it, so that it registers again")
    registered, answers = state.image.nodes, state.image.answers.nodes
    unknown = [
        node
        for node in nodes.nodes.values()
        if not all(_has_ranges(registered.get(key) or answers.get(key)) for key in node.keys)
    ]
    if unknown or not nodes.nodes:
        named = ", ".join(map(str, unknown[:_MOST_NAMED]))
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        return Precondition(
            "ranges",
            Verdict.UNKNOWN,
            f"what {named}{more} supports is not known" if unknown else "no node is registered",
            "add --bootstrap-server, so that nodes are asked",
            waits=True,
        )
    count = len(nodes.nodes)
    asked = sum(any(map(answers.get, node.keys)) for node in nodes.nodes.values())
    if not asked:
        text = f"{count} nodes registered what they support; none was asked whether it still does"
    elif asked < count:
        text = f"{asked} of {count} nodes answer what they registered; the others were not asked"
    else:
        text = f"{count} nodes answer what they registered"
    return Precondition("ranges", Verdict.YES, text)


def _has_ranges(node: Node | None) -> bool:
    """Whether something follows from what a node said of its ranges."""
    return (
        node is not None
        and not node.capabilities.broken
        and METADATA_VERSION in node.capabilities.ranges
    )


def _controller(plan: Plan, state: MonitorState, limits: Limits, now_ms: int) -> Precondition:
    """Whether readiness expects the controller to accept the levels."""
    levels = {
        name: max(level, state.image.features.levels.get(name, FeatureLevel(0)))
        for name, level in plan.after.items()
    }
    report = assess_readiness(
        state.image, None, levels, times=state.times, limits=limits, now_ms=now_ms
    )
    reasons = [*report.reasons]
    reasons += [f"{b.role} {b.node_id} blocks: {b.remedy}" for b in report.blockers]
    if report.verdict is Verdict.YES:
        return Precondition("levels", Verdict.YES, "the controller is expected to accept them")
    text = reasons[0] if reasons else "whether the controller accepts them is not known"
    return Precondition("levels", report.verdict, text, "featurewatch readiness has all reasons")


def span(duration_ms: int) -> str:
    """A time span for people: its largest unit and the next."""
    left = max(duration_ms, 0) // 1000
    parts: list[str] = []
    for unit_s, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, unit_s)
        if count or (unit_s == 1 and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])
