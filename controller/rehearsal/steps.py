"""The steps of a rehearsal, and how they are written: ``upgrade:metadata.version=4.3-IV0``."""

import re
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.controller.kraft import LevelUpdate, release_of, releases
from featurewatch.controller.kraft.releases import UnknownReleaseError, production_levels
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
lose:broker-2                 it stops, and its session ends
register:broker-2             a new process registers with its id; …@4.3: of that release
restart:broker-2              lose and register; brokers, controllers or all; …@4.3
unregister:broker-2           its registration is removed"""
"""Every step, one a line."""

_ALL: Final = ("brokers", "controllers", "all")
_NODE: Final = re.compile(r"(broker|controller)-(\d{1,9})")
_SHORT: Final = range(-(1 << 15), 1 << 15)
_LINE: Final = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True)
class UpdateLevels:
    """An ``UpdateFeatures`` request."""

    text: str
    updates: tuple[LevelUpdate, ...]


@dataclass(frozen=True, slots=True)
class StopNode:
    """A node stops, and its session ends."""

    node: NodeKey

    @property
    def text(self) -> str:
        """How the step is written."""
        return f"lose:{self.node}"


@dataclass(frozen=True, slots=True)
class RegisterNode:
    """A process registers with a node's id; of this release, or with the ranges known before.

    ``new`` says that no node had this id.
    """

    text: str
    node: NodeKey
    release: str | None = None
    new: bool = False

    @property
    def ranges(self) -> SupportedRanges | None:
        """What a node of the release supports."""
        return None if self.release is None else release_of(self.release).ranges()


@dataclass(frozen=True, slots=True)
class UnregisterNode:
    """A registration is removed, as ``kafka-cluster unregister`` does."""

    node: NodeKey

    @property
    def text(self) -> str:
        """How the step is written."""
        return f"unregister:{self.node}"


@dataclass(frozen=True, slots=True)
class RestartNodes:
    """Nodes are stopped and started one by one, on another release if one is named.

    ``which`` is a node, or ``brokers``, ``controllers``, ``all`` (controllers first).
    """

    text: str
    which: NodeKey | str
    release: str | None = None


Step = UpdateLevels | StopNode | RegisterNode | UnregisterNode | RestartNodes


class StepSyntaxError(ValueError):
    """A step that cannot be read: one line that says what to write."""


def parse(text: str) -> Step:
    """A step as it is written on a command line.

    Raises:
        BadStepError: it is none; the text says what would be one.
    """
    verb, colon, rest = (part.strip() for part in text.partition(":"))
    if not colon or not rest:
        raise StepSyntaxError(
            f"{text!r} is no step: write what to do and with what, as in lose:broker-2"
        )
    try:
        return _parse(f"{verb}:{rest}", verb, rest)
    except UnknownReleaseError as error:
        raise StepSyntaxError(f"step {text}: {error}") from None


def parse_document(content: Any) -> list[Step]:
    """The steps of a YAML document: a list, or a mapping with ``steps``.

    Each is written as on a command line, or as a mapping of one entry: ``lose: broker-2``,
    ``upgrade: {metadata.version: 4.3-IV0}``.

    Raises:
        BadStepError: something in it is no step.
    """
    listed = content.get("steps") if isinstance(content, dict) else content
    if not isinstance(listed, list) or not listed:
        raise StepSyntaxError("there are no steps in it: write a list below `steps:`")
    return [parse(_as_text(entry)) for entry in listed]


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
    raise StepSyntaxError(f"{entry!r} is no step: write it as on the command line, lose:broker-2")


def _parse(text: str, verb: str, rest: str) -> Step:
    match verb:
        case "upgrade":
            return UpdateLevels(text, _levels(text, rest, UpgradeType.UPGRADE))
        case "downgrade" | "downgrade-unsafe" | "disable" | "disable-unsafe":
            unsafe = verb.endswith("-unsafe")
            kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
            if verb.startswith("disable"):
                return UpdateLevels(text, tuple(_off(name, kind) for name in rest.split(",")))
            return UpdateLevels(text, _levels(text, rest, kind))
        case "lose":
            return StopNode(_node(text, rest))
        case "unregister":
            return UnregisterNode(_node(text, rest))
        case "add-broker" | "add-controller":
            role, (node_id, release) = verb.removeprefix("add-"), _released(rest)
            if release is None:
                raise StepSyntaxError(f"step {text} names no release: write {verb}:{node_id}@4.3")
            return RegisterNode(text, _node(text, f"{role}-{node_id}"), release, new=True)
        case "register":
            which, release = _released(rest)
            return RegisterNode(text, _node(text, which), release)
        case "restart":
            which, release = _released(rest)
            return RestartNodes(text, which if which in _ALL else _node(text, which), release)
        case _:
            known = ", ".join(dict.fromkeys(re.split(r"[:\s]", line)[0] for line in _lines()))
            raise StepSyntaxError(f"step {text}: there is no {verb!r}, but {known}")


def _lines() -> list[str]:
    return GRAMMAR.splitlines()


def _off(name: str, kind: UpgradeType) -> LevelUpdate:
    return LevelUpdate(FeatureName(name.strip()), FeatureLevel(0), kind)


def _released(rest: str) -> tuple[str, str | None]:
    """What stands before an @, and the release after it."""
    which, at, release = (part.strip() for part in rest.partition("@"))
    return which, release_of(release).name if at else None


def _node(text: str, name: str) -> NodeKey:
    match = _NODE.fullmatch(name)
    if match is None:
        raise StepSyntaxError(f"step {text}: {name!r} is no node: write broker-2 or controller-2")
    return NodeKey(Role(match[1]), NodeId(int(match[2])))


def _levels(text: str, rest: str, kind: UpgradeType) -> tuple[LevelUpdate, ...]:
    found: list[LevelUpdate] = []
    for part in rest.split(","):
        name, equals, level = (word.strip() for word in part.partition("="))
        if not equals or not name or not level:
            raise StepSyntaxError(f"step {text}: {part!r} is not feature=level")
        if name == "release":
            found += _of_release(level, kind)
        else:
            found.append(LevelUpdate(FeatureName(name), _level(text, name, level), kind))
    return tuple(found)


def _of_release(name: str, kind: UpgradeType) -> list[LevelUpdate]:
    """What the tool of a release asks for: none of a feature at 0 in an upgrade (KIP-1022)."""
    level = named_level(name)
    if level is None:
        raise UnknownReleaseError(f"Kafka {name!r} has no level: write {_known()}")
    wanted = {METADATA_VERSION: level, **release_of(name).defaults(level)}
    return [
        LevelUpdate(feature, FeatureLevel(wanted[feature]), kind)
        for feature in wanted
        if wanted[feature] > 0 or kind is not UpgradeType.UPGRADE
    ]


def _level(text: str, feature: str, level: str) -> FeatureLevel:
    if re.fullmatch(r"-?\d{1,5}", level) and int(level) in _SHORT:
        return FeatureLevel(int(level))
    found = named_level(level) if feature == METADATA_VERSION else None
    if found is None:
        by_name = f", or {_known()}" if feature == METADATA_VERSION else ""
        raise StepSyntaxError(
            f"step {text}: {level!r} is no level of {feature}: write a number{by_name}"
        )
    return found


def named_level(name: str) -> FeatureLevel | None:
    """The level of metadata.version by its name, the newest of a release by the release's."""
    line = ".".join(name.split(".")[:2])
    newest = _LINE.fullmatch(line) and re.fullmatch(r"\d+(\.\d+)+", name)
    found = [
        one.level
        for one in production_levels()
        if one.name == name or (newest and one.name.startswith(f"{line}-IV"))
    ]
    return found[-1] if found else None


def _known() -> str:
    return f"a name like {list(releases())[-1]}-IV0"
