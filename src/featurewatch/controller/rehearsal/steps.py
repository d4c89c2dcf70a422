"""The steps of a rehearsal and their syntax: ``upgrade:metadata.version=4.3-IV0``.

Longer than 300 lines: the grammar of every step, its values and its parser are read together.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.common.text import closest
from featurewatch.controller.kraft import LevelUpdate, release_of, releases
from featurewatch.controller.kraft.releases import (
    UnknownReleaseError,
    intended_feature,
    production_levels,
)
from featurewatch.controller.rehearsal.partition_steps import (
    ELECTIONS,
    OPERATIONS,
    PartitionStep,
    StepSyntaxError,
    parse_operation,
)
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
    SupportedRanges,
    UpgradeType,
)

GRAMMAR: Final = """\
upgrade:FEATURE=LEVEL,…       a level, or the name of one for metadata.version
upgrade:release=4.3           all features, as with kafka-features' --release-version
downgrade:…                   the same; downgrade-unsafe: with --unsafe
disable:FEATURE,…             at level 0; disable-unsafe: with --unsafe
add-broker:7@4.3              a new node of a release; add-controller likewise
stop:broker-2                 it stops, and its session ends
register:broker-2             a new process registers with its id; …@4.3: of that release
restart:broker-2              stop and register; brokers, controllers or all; …@4.3
unregister:broker-2           its registration is removed
lose:2                        the broker dies, as stop:broker-2, and what becomes of partitions
shutdown:2                    the broker shuts down in order
start:2                       the broker starts and catches up; …@4.3: of that release
reassign:FILE                 new replicas, as kafka-reassign-partitions --execute
elect-preferred               of every partition; elect-preferred:TOPIC,… of some topics
elect-unclean                 likewise, also of replicas outside the ISR
create-topic:NAME,12,3        a topic of 12 partitions with 3 replicas each"""
"""The syntax of every step, one per line."""

LOSE: Final = "lose"
"""The verb of a `StopNode` by which a broker dies."""

_GROUPS: Final = ("brokers", "controllers", "all")
_NODE: Final = re.compile(r"(broker|controller)-(\d{1,9})")
_INT16: Final = range(-(1 << 15), 1 << 15)
_RELEASE_LINE: Final = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True)
class UpdateLevels:
    """An ``UpdateFeatures`` request."""

    text: str
    updates: tuple[LevelUpdate, ...]


@dataclass(frozen=True, slots=True)
class StopNode:
    """A node stops, and its session ends; ``verb`` is how the step was written."""

    node: NodeKey
    verb: str = "stop"

    @property
    def text(self) -> str:
        """The step in its command-line syntax."""
        return f"{self.verb}:{self.node.node_id if self.verb == LOSE else self.node}"


@dataclass(frozen=True, slots=True)
class ShutDownBroker:
    """A broker shuts down in order: its leaders move before it stops."""

    node: NodeKey

    @property
    def text(self) -> str:
        """The step in its command-line syntax."""
        return f"shutdown:{self.node.node_id}"


@dataclass(frozen=True, slots=True)
class RegisterNode:
    """A process registers with a node's id, on ``release`` or, if None, with its previous ranges.

    ``new``: no node had this id before.
    """

    text: str
    node: NodeKey
    release: str | None = None
    new: bool = False

    @property
    def ranges(self) -> SupportedRanges | None:
        """The ranges of ``release``, None without one."""
        return None if self.release is None else release_of(self.release).ranges()


@dataclass(frozen=True, slots=True)
class UnregisterNode:
    """A registration is removed, as ``kafka-cluster unregister`` does."""

    node: NodeKey

    @property
    def text(self) -> str:
        """The step in its command-line syntax."""
        return f"unregister:{self.node}"


@dataclass(frozen=True, slots=True)
class RestartNodes:
    """Nodes are stopped and started one by one, on ``release`` if it is given.

    ``which`` is a node, or ``brokers``, ``controllers``, ``all`` (controllers first).
    """

    text: str
    which: NodeKey | str
    release: str | None = None


Step = (
    UpdateLevels
    | StopNode
    | ShutDownBroker
    | RegisterNode
    | UnregisterNode
    | RestartNodes
    | PartitionStep
)


def is_about_partitions(step: Step) -> bool:
    """Whether a step needs the topics and partitions of the cluster."""
    match step:
        case ShutDownBroker() | PartitionStep():
            return True
        case StopNode(verb=verb):
            return verb == LOSE
        case RegisterNode(text=text):
            return text.startswith("start:")
        case _:
            return False


def parse(text: str) -> Step:
    """Parses a step as written on a command line.

    Raises:
        StepSyntaxError: if it is not a step; the message has the expected syntax.
    """
    verb, colon, rest = (part.strip() for part in text.partition(":"))
    if verb in ELECTIONS and not colon:
        return PartitionStep(verb, parse_operation(verb, verb, ""))
    if not colon or not rest:
        raise StepSyntaxError(
            f"{text!r} is no step: write what to do and with what, as in stop:broker-2"
        )
    try:
        return _parse(f"{verb}:{rest}", verb, rest)
    except UnknownReleaseError as error:
        raise StepSyntaxError(f"step {text}: {error}") from None


def parse_document(content: Any) -> list[Step]:
    """Parses the steps of a YAML document: a list, or a mapping with ``steps``.

    Each step is written as on a command line, or as a mapping of one entry: ``stop: broker-2``,
    ``upgrade: {metadata.version: 4.3-IV0}``.

    Raises:
        StepSyntaxError: if it has no steps, or an entry is not a step.
    """
    steps = content.get("steps") if isinstance(content, dict) else content
    if not isinstance(steps, list) or not steps:
        raise StepSyntaxError("there are no steps in it: write a list below `steps:`")
    return [parse(_as_text(entry)) for entry in steps]


def _as_text(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    if isinstance(entry, dict) and len(entry) == 1:
        ((verb, what),) = entry.items()
        if isinstance(what, dict):
            what = ",".join(f"{name}={level}" for name, level in what.items())
        elif isinstance(what, list):
            what = ",".join(map(str, what))
        return f"{verb}:{what}"
    raise StepSyntaxError(f"{entry!r} is no step: write it as on the command line, stop:broker-2")


def _parse(text: str, verb: str, rest: str) -> Step:
    match verb:
        case "upgrade":
            return UpdateLevels(text, _levels(text, rest, UpgradeType.UPGRADE))
        case "downgrade" | "downgrade-unsafe" | "disable" | "disable-unsafe":
            unsafe = verb.endswith("-unsafe")
            kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
            if verb.startswith("disable"):
                return UpdateLevels(
                    text, tuple(_disabled(text, name, kind) for name in rest.split(","))
                )
            return UpdateLevels(text, _levels(text, rest, kind))
        case "stop" | "unregister":
            node = _node(text, rest)
            return StopNode(node) if verb == "stop" else UnregisterNode(node)
        case _ if verb in OPERATIONS:
            return PartitionStep(text, parse_operation(text, verb, rest))
        case "lose" | "shutdown" | "start":
            return _parse_broker_step(text, verb, rest)
        case "add-broker" | "add-controller":
            role, (node_id, release) = verb.removeprefix("add-"), _split_release(rest)
            if release is None:
                raise StepSyntaxError(f"step {text} names no release: write {verb}:{node_id}@4.3")
            return RegisterNode(text, _node(text, f"{role}-{node_id}"), release, new=True)
        case "register":
            which, release = _split_release(rest)
            return RegisterNode(text, _node(text, which), release)
        case "restart":
            which, release = _split_release(rest)
            return RestartNodes(text, which if which in _GROUPS else _node(text, which), release)
        case _:
            verbs = list(dict.fromkeys(re.split(r"[:\s]", line)[0] for line in _lines()))
            close = closest(verb, verbs)
            hint = f": did you mean {close}?" if close else f", but {', '.join(verbs)}"
            raise StepSyntaxError(f"step {text}: there is no {verb!r}{hint}")


def _parse_broker_step(text: str, verb: str, rest: str) -> Step:
    if verb == "start":
        which, release = _split_release(rest)
        return RegisterNode(text, _broker(text, which), release)
    node = _broker(text, rest)
    return StopNode(node, LOSE) if verb == LOSE else ShutDownBroker(node)


def _lines() -> list[str]:
    return GRAMMAR.splitlines()


def _disabled(text: str, name: str, kind: UpgradeType) -> LevelUpdate:
    return LevelUpdate(_feature(text, name.strip()), FeatureLevel(0), kind)


def _feature(text: str, name: str) -> FeatureName:
    """A feature by name: one that Kafka lacks may be a cluster's own, but no misspelt one of
    Kafka's."""
    if close := intended_feature(name):
        raise StepSyntaxError(f"step {text}: Kafka has no feature {name}: did you mean {close}?")
    return FeatureName(name)


def _split_release(rest: str) -> tuple[str, str | None]:
    """The part before an @, and the release after it (None without an @)."""
    which, at, release = (part.strip() for part in rest.partition("@"))
    return which, release_of(release).name if at else None


def _node(text: str, name: str) -> NodeKey:
    match = _NODE.fullmatch(name)
    if match is None:
        raise StepSyntaxError(f"step {text}: {name!r} is no node: write broker-2 or controller-2")
    return NodeKey(Role(match[1]), NodeId(int(match[2])))


def _broker(text: str, name: str) -> NodeKey:
    """A broker by its id alone, or as `_node` has it."""
    node = _node(text, f"broker-{name}" if name.isdecimal() else name)
    if node.role is not Role.BROKER:
        raise StepSyntaxError(f"step {text} is for brokers: write stop:{node} for a controller")
    return node


def _levels(text: str, rest: str, kind: UpgradeType) -> tuple[LevelUpdate, ...]:
    updates: list[LevelUpdate] = []
    for part in rest.split(","):
        name, equals, level = (field.strip() for field in part.partition("="))
        if not equals or not name or not level:
            raise StepSyntaxError(f"step {text}: {part!r} is not feature=level")
        if name == "release":
            updates += _release_updates(level, kind)
        else:
            updates.append(LevelUpdate(_feature(text, name), _level(text, name, level), kind))
    return tuple(updates)


def _release_updates(name: str, kind: UpgradeType) -> list[LevelUpdate]:
    """The updates of ``--release-version``; an upgrade leaves features at 0 out (KIP-1022)."""
    level = named_level(name)
    if level is None:
        raise UnknownReleaseError(f"Kafka {name!r} has no level: write {_example_level_name()}")
    levels = {METADATA_VERSION: level, **release_of(name).defaults(level)}
    return [
        LevelUpdate(feature, FeatureLevel(levels[feature]), kind)
        for feature in levels
        if levels[feature] > 0 or kind is not UpgradeType.UPGRADE
    ]


def _level(text: str, feature: str, level: str) -> FeatureLevel:
    if re.fullmatch(r"-?\d{1,5}", level) and int(level) in _INT16:
        return FeatureLevel(int(level))
    named = named_level(level) if feature == METADATA_VERSION else None
    if named is None:
        by_name = f", or {_example_level_name()}" if feature == METADATA_VERSION else ""
        raise StepSyntaxError(
            f"step {text}: {level!r} is not a level of {feature}: write a number{by_name}"
        )
    return named


def named_level(name: str) -> FeatureLevel | None:
    """The metadata.version of a level's name, or the newest of a release's name; None: unknown."""
    release_line = ".".join(name.split(".")[:2])
    is_release = _RELEASE_LINE.fullmatch(release_line) and re.fullmatch(r"\d+(\.\d+)+", name)
    levels = [
        level.level
        for level in production_levels()
        if level.name == name or (is_release and level.name.startswith(f"{release_line}-IV"))
    ]
    return levels[-1] if levels else None


def _example_level_name() -> str:
    return f"a name like {list(releases())[-1]}-IV0"
