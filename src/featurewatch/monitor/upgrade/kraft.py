"""The steps of an upgrade in KRaft mode.

Sources: Kafka's upgrade notes of the releases (restart nodes one at a time, verify, finalize),
KIP-584 and KIP-778 (levels), KIP-853 and Kafka's "Upgrade" of KRaft (kraft.version: first the
level, then the nodes' configuration), KIP-896 (old clients).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from featurewatch.common.id_runs import format_ids
from featurewatch.controller.advisories import Advisory, advisories
from featurewatch.controller.downgrade_path import downgrade_path
from featurewatch.controller.kraft.consequences import between
from featurewatch.controller.kraft.releases import Release
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import format_releases
from featurewatch.kafka.releases import release_number
from featurewatch.monitor.readiness.report import release_levels
from featurewatch.monitor.upgrade.checks import span
from featurewatch.monitor.upgrade.plan import Levels, Options, Step, StepKind
from featurewatch.monitor.upgrade.way_back import REPLAYS, Software, way_back
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
)

_OFF: Final = FeatureLevel(0)
_FIRST_DYNAMIC_UPGRADE: Final = "4.1"
"""The first release whose controllers raise kraft.version (KAFKA-16538)."""


@dataclass(frozen=True, slots=True)
class KraftCluster:
    """What the steps follow from.

    ``controllers`` are in the order of the roll, with the nodes that are brokers too. ``releases``
    are those that nodes run now, oldest first; ``levels`` those that are finalized. ``alert_ms`` is
    how long levels may stay unfinalized until the alert fires, in milliseconds. ``earlier`` is what
    nodes ran before the target, for where none does any more (empty: not known).
    """

    controllers: tuple[NodeId, ...]
    brokers: tuple[NodeId, ...]
    releases: tuple[str, ...]
    levels: Levels
    alert_ms: int
    earlier: str = ""


def levels_after(target: Release, levels: Levels) -> dict[FeatureName, FeatureLevel]:
    """The levels of a release, none lowered and without kraft.version, which has its own step."""
    wanted = release_levels(target)
    kept = {name: level for name, level in levels.items() if name not in wanted}
    raised = {name: max(level, levels.get(name, _OFF)) for name, level in wanted.items()}
    return {
        name: level
        for name, level in sorted({**kept, **raised}.items())
        if name != KRAFT_VERSION and level > 0
    }


class _Restarts(NamedTuple):
    """What nodes are restarted on.

    ``release`` is its name, ``software`` what people call it, ``before`` what it replaces, in
    words. ``replays``: a node may replay a level below the lowest with which it starts.
    """

    release: str
    software: str
    before: str
    replays: bool = False

    @property
    def way_back(self) -> str:
        """How nodes come back to what they ran."""
        return f"restart the nodes on {self.before} in the same way, brokers before controllers"

    @property
    def command(self) -> str:
        """The check before the restart of a node."""
        directory = f" --release {self.release} --node-directory DIRECTORY" if self.replays else ""
        return f"featurewatch upgrade check restart --node {{}}{directory} --wait"


def kraft_steps(
    cluster: KraftCluster, target: Release, soak_ms: int, options: Options, software: str = ""
) -> Iterator[Step]:
    """The steps from the first check to the last level; ``software`` is what nodes are restarted
    on, in words (default: the target)."""
    yield _prepare(cluster, target, options)
    levels = dict(cluster.levels)
    is_below = 0 < levels.get(METADATA_VERSION, _OFF) < target.minimum
    if is_below:
        step = _to_minimum(levels, target, options)
        levels[METADATA_VERSION] = target.minimum
        yield step
    before = _before(cluster, target)
    restarts = _Restarts(target.name, software or f"Kafka {target.name}", before, replays=is_below)
    yield _roll("controllers", cluster.controllers, restarts, options)
    if cluster.brokers:
        yield _roll("brokers", cluster.brokers, restarts, options)
    yield _soak(cluster, restarts, soak_ms, options)
    yield _finalize(levels, target, Software(before, *_older(cluster, target)[:1]), options)
    if _can_raise_kraft_version(target, cluster.levels):
        yield _dynamic_quorum(options)


def _older(cluster: KraftCluster, target: Release) -> list[str]:
    """What nodes run until they are restarted on the target, oldest first; empty: not known."""
    number = release_number(target.name)
    older = [name for name in cluster.releases if release_number(name) < number]
    return older or ([cluster.earlier] if cluster.earlier else [])


def _before(cluster: KraftCluster, target: Release) -> str:
    """The software of the way back, in words."""
    older = _older(cluster, target)
    return f"Kafka {format_releases(older)}" if older else "the release that they ran before"


def faults_on_the_way(
    releases: tuple[str, ...], target: Release, levels: Levels
) -> tuple[Advisory, ...]:
    """The known faults from the releases that run and the finalized levels to the target."""
    return advisories(releases, target.name, before=levels, after=levels_after(target, levels))


def fault_text(fault: Advisory) -> str:
    """A known fault as a line of the first step."""
    return f"known fault {fault.id} ({fault.severity}): {fault.fault} {fault.advice}"


def _prepare(cluster: KraftCluster, target: Release, options: Options) -> Step:
    by_hand = ["back up the configuration of every node, and keep the old software at hand"]
    if _major(target.name) >= 4 and any(_major(name) < 4 for name in cluster.releases):
        by_hand += [
            "brokers and controllers of Kafka 4 need Java 17 or newer",
            "clients older than 2.1 cannot connect to Kafka 4 (KIP-896): the brokers' metric "
            "kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec counts their "
            "requests, where the release has it",
        ]
    faults = faults_on_the_way(cluster.releases, target, cluster.levels)
    by_hand += map(fault_text, faults)
    steps = [f"-s restart:all@{target.name}", f"-s upgrade:{_assignments(cluster.levels, target)}"]
    return Step(
        "prepare",
        StepKind.PREPARE,
        "Check that nothing is in the way",
        preconditions=(
            "the metadata log is read to its end",
            "the release of every node is known, and none is newer than the target",
            "every registration has a living node, and no broker is fenced",
            "no alert fires that speaks against it",
        ),
        commands=(
            options.reading(f"featurewatch readiness --target {target.name}"),
            *(
                (f"featurewatch rehearse {options.read} {' '.join(steps)}",)
                if "--bootstrap-controller" in options.read or "--log-dir" in options.read
                else ()
            ),
        ),
        by_hand=tuple(by_hand),
        way_back="nothing has changed",
    )


def _assignments(levels: Levels, target: Release) -> str:
    after = levels_after(target, levels)
    return (
        ",".join(
            f"{name}={level}" for name, level in after.items() if level != levels.get(name, _OFF)
        )
        or f"{METADATA_VERSION}={after.get(METADATA_VERSION, _OFF)}"
    )


def _to_minimum(levels: Levels, target: Release, options: Options) -> Step:
    low = levels[METADATA_VERSION]
    path = downgrade_path(levels, {**levels, METADATA_VERSION: target.minimum})
    return Step(
        "finalize-minimum",
        StepKind.FINALIZE,
        f"Raise metadata.version to {level_name(METADATA_VERSION, target.minimum)}, below which "
        f"Kafka {target.name} does not start",
        preconditions=("every node supports that level: featurewatch readiness says so",),
        levels={METADATA_VERSION: target.minimum},
        commands=(
            options.reading(f"featurewatch readiness --feature metadata.version={target.minimum}"),
            f"featurewatch features {options.change} upgrade "
            f"--feature metadata.version={target.minimum}",
        ),
        changes=tuple(_changes(METADATA_VERSION, low, target.minimum)),
        point_of_no_return=path is not None and path.lossless is False,
        way_back="" if path is None else path.reason,
    )


def _roll(which: str, nodes: tuple[NodeId, ...], restarts: _Restarts, options: Options) -> Step:
    order = ", the active one last" if which == "controllers" and len(nodes) > 1 else ""
    return Step(
        f"roll-{which}",
        StepKind.ROLL,
        f"Restart the {which} on {restarts.software}, one at a time{order}",
        preconditions=(
            "before each node: `featurewatch upgrade check restart` exits with 0",
            *(("all controllers run the target release",) if which == "brokers" else ()),
        ),
        nodes=nodes,
        release=restarts.release,
        commands=tuple(options.reading(restarts.command.format(node)) for node in nodes),
        by_hand=(
            *((REPLAYS,) if restarts.replays else ()),
            "after each check: stop that node (bin/kafka-server-stop.sh), install "
            f"{restarts.software}, start it with the same configuration and directories",
        ),
        changes=("the software of these nodes; no level changes",),
        way_back=restarts.way_back,
    )


def _soak(cluster: KraftCluster, restarts: _Restarts, soak_ms: int, options: Options) -> Step:
    return Step(
        "soak",
        StepKind.WAIT,
        f"Let all nodes run {restarts.software} for {span(soak_ms)}",
        preconditions=(f"all nodes run {restarts.software}",),
        release=restarts.release,
        commands=(options.reading(f"featurewatch upgrade status --plan {options.file}"),),
        by_hand=("look at latency, errors and consumer lag of the applications",),
        changes=(
            "nothing; the levels may wait longer, and the alert finalization-forgotten fires "
            f"after {span(cluster.alert_ms)}",
        ),
        soak_ms=soak_ms,
        way_back=restarts.way_back,
    )


def _finalize(levels: Levels, target: Release, before: Software, options: Options) -> Step:
    after = levels_after(target, levels)
    raised = {n: level for n, level in after.items() if level > levels.get(n, _OFF)}
    kept = {n: level for n, level in levels.items() if n == KRAFT_VERSION}
    path = downgrade_path(levels, {**after, **kept})
    features = " ".join(f"--feature {name}={level}" for name, level in raised.items())
    changes = [
        text
        for name, level in raised.items()
        for text in _changes(name, levels.get(name, _OFF), level)
    ]
    return Step(
        "finalize",
        StepKind.FINALIZE,
        f"Finalize the levels of Kafka {target.name}",
        preconditions=(
            f"all nodes run Kafka {target.name}, and have for the whole soak time",
            "every registration has a living node, and nodes answer what they registered",
            "no alert fires that speaks against it",
            "the controller accepts the levels in a dry run",
        ),
        levels=after,
        commands=(
            f"featurewatch upgrade finalize --plan {options.file} {_finalize_options(options)}",
            *((f"bin/kafka-features.sh {options.change} upgrade {features}",) if raised else ()),
        )
        if raised
        else (),
        by_hand=("either of the two commands: the first checks again before it sends",)
        if raised
        else (),
        changes=tuple(changes) or ("nothing: the levels are finalized already",),
        point_of_no_return=bool(raised) and path is not None and path.lossless is False,
        way_back=way_back(raised, levels, path, before, options),
    )


def _finalize_options(options: Options) -> str:
    return options.read if options.change in options.read else f"{options.read} {options.change}"


def _changes(name: FeatureName, low: FeatureLevel, high: FeatureLevel) -> Iterator[str]:
    before, after = (level_name(name, level) for level in (low, high))
    yield f"{name}: {before} -> {after}"
    for consequence in between(name, low, high):
        yield from (f"beware, {name} {consequence.level}: {cost}" for cost in consequence.costs)


def _can_raise_kraft_version(target: Release, levels: Levels) -> bool:
    is_static = levels.get(KRAFT_VERSION, _OFF) < 1
    return is_static and _number(target.name) >= _number(_FIRST_DYNAMIC_UPGRADE)


def _dynamic_quorum(options: Options) -> Step:
    return Step(
        "dynamic-quorum",
        StepKind.FINALIZE,
        "Optional: make the voters dynamic, so that controllers can be added and removed",
        preconditions=(
            "every voter runs Kafka 4.1 or newer, and fetches",
            "the levels of the release are finalized",
        ),
        levels={KRAFT_VERSION: FeatureLevel(1)},
        commands=(
            f"featurewatch features {options.change} upgrade --feature kraft.version=1",
            f"featurewatch quorum describe {options.change} --status",
        ),
        by_hand=(
            "only then, and before the next restart of each: replace controller.quorum.voters by "
            "controller.quorum.bootstrap.servers in the configuration of every controller and "
            "broker, and restart them one at a time",
        ),
        changes=("kraft.version: off -> 1; the voters are in the metadata log (KIP-853)",),
        point_of_no_return=True,
        optional=True,
        way_back="No way back: kraft.version cannot be lowered.",
    )


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def _major(release: str) -> int:
    return _number(release)[0]


def title_of_nodes(step: Step) -> str:
    """The nodes of a step for people, in their order; many as runs of ids."""
    if len(step.nodes) <= _SPELLED_OUT:
        return ", ".join(map(str, step.nodes))
    return format_ids(step.nodes)


_SPELLED_OUT: Final = 12
