"""The settings that a topic may have, and their values, as Kafka 3.9's ``LogConfig`` checks them.

The texts are those of ``ConfigDef`` and ``LogConfig.validate``. Of ``message.format.version`` only
the form is checked; no version of it matters from Kafka 3.0 on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class SettingKind(StrEnum):
    """The type of a setting, as ``ConfigDef.Type`` names it."""

    BOOLEAN = "BOOLEAN"
    DOUBLE = "DOUBLE"
    INT = "INT"
    LIST = "LIST"
    LONG = "LONG"
    STRING = "STRING"


@dataclass(frozen=True, slots=True)
class SettingRule:
    """The valid values of a setting; ``low`` and ``high`` are inclusive, None: no bound.

    ``allowed`` are the words of a string or a list, none: any. ``also`` is a number beside the
    range. ``default`` is that of a list.
    """

    kind: SettingKind
    low: int | None = None
    high: int | None = None
    allowed: tuple[str, ...] = ()
    also: int | None = None
    default: str = ""


_INT, _LONG = SettingKind.INT, SettingKind.LONG
_FLAG: Final = SettingRule(SettingKind.BOOLEAN)
_REPLICAS: Final = SettingRule(SettingKind.LIST)
_BITS: Final = {_INT: 31, _LONG: 63}
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

SETTING_RULES: Final[Mapping[str, SettingRule]] = MappingProxyType(
    {
        "cleanup.policy": SettingRule(
            SettingKind.LIST, allowed=("compact", "delete"), default="delete"
        ),
        "compression.gzip.level": SettingRule(_INT, 1, 9, also=-1),
        "compression.lz4.level": SettingRule(_INT, 1, 17),
        "compression.type": SettingRule(SettingKind.STRING, allowed=_CODECS),
        "compression.zstd.level": SettingRule(_INT, -131_072, 22),
        "delete.retention.ms": SettingRule(_LONG, 0),
        "file.delete.delay.ms": SettingRule(_LONG, 0),
        "flush.messages": SettingRule(_LONG, 1),
        "flush.ms": SettingRule(_LONG, 0),
        "follower.replication.throttled.replicas": _REPLICAS,
        "index.interval.bytes": SettingRule(_INT, 0),
        "leader.replication.throttled.replicas": _REPLICAS,
        "local.retention.bytes": SettingRule(_LONG, -2),
        "local.retention.ms": SettingRule(_LONG, -2),
        "max.compaction.lag.ms": SettingRule(_LONG, 1),
        "max.message.bytes": SettingRule(_INT, 0),
        "message.downconversion.enable": _FLAG,
        "message.format.version": SettingRule(SettingKind.STRING),
        "message.timestamp.after.max.ms": SettingRule(_LONG, 0),
        "message.timestamp.before.max.ms": SettingRule(_LONG, 0),
        "message.timestamp.difference.max.ms": SettingRule(_LONG, 0),
        "message.timestamp.type": SettingRule(
            SettingKind.STRING, allowed=("CreateTime", "LogAppendTime")
        ),
        "min.cleanable.dirty.ratio": SettingRule(SettingKind.DOUBLE, 0, 1),
        "min.compaction.lag.ms": SettingRule(_LONG, 0),
        "min.insync.replicas": SettingRule(_INT, 1),
        "preallocate": _FLAG,
        "remote.log.copy.disable": _FLAG,
        "remote.log.delete.on.disable": _FLAG,
        "remote.storage.enable": _FLAG,
        "retention.bytes": SettingRule(_LONG),
        "retention.ms": SettingRule(_LONG, -1),
        "segment.bytes": SettingRule(_INT, 14),
        "segment.index.bytes": SettingRule(_INT, 4),
        "segment.jitter.ms": SettingRule(_LONG, 0),
        "segment.ms": SettingRule(_LONG, 1),
        "unclean.leader.election.enable": _FLAG,
    }
)
"""The settings of topics in Kafka 3.9, by name."""

_MIN_LAG, _MAX_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"
_FORMAT_VERSION: Final = "message.format.version"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,25}")
_DECIMAL: Final = re.compile(
    r"([+-]?(?:[0-9]{1,50}\.?[0-9]{0,50}|\.[0-9]{1,50})(?:[eE][+-]?[0-9]{1,3})?)[fFdD]?"
)
_VERSION: Final = re.compile(r"[0-9]\.[0-9]{1,2}(\.[0-9])?(-IV[0-9])?")
_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+")


def invalid_setting_name(settings: Mapping[str, str]) -> str | None:
    """Why the settings cannot be together, whatever their values; None if they can."""
    for name in settings:
        if name not in SETTING_RULES:
            return f"Unknown topic config name: {name}"
    return None


def invalid_value(settings: Mapping[str, str]) -> str | None:
    """Why a value of known settings is invalid; None if all are valid."""
    for name, value in settings.items():
        reason = _reason(name, SETTING_RULES[name], value)
        if reason is not None:
            shown = _shown(SETTING_RULES[name], name, value)
            return f"Invalid value {shown} for configuration {name}: {reason}"
    return None


def conflict(settings: Mapping[str, str]) -> str | None:
    """Why valid settings contradict each other; None if they do not."""
    if _MIN_LAG not in settings or _MAX_LAG not in settings:
        return None
    low, high = int(settings[_MIN_LAG]), int(settings[_MAX_LAG])
    if low <= high:
        return None
    return f"conflict topic config setting {_MIN_LAG} ({low}) > {_MAX_LAG} ({high})"


def invalid_settings(settings: Mapping[str, str]) -> str | None:
    """Why a topic cannot have these settings; None if it can."""
    return invalid_setting_name(settings) or invalid_value(settings) or conflict(settings)


def _reason(name: str, rule: SettingRule, value: str) -> str | None:
    text = value.strip()
    match rule.kind:
        case SettingKind.BOOLEAN:
            if text.lower() not in ("true", "false"):
                return "Expected value to be either true or false"
        case SettingKind.INT | SettingKind.LONG:
            bound = 1 << _BITS[rule.kind]
            if not _INTEGER.fullmatch(text) or not -bound <= int(text) < bound:
                return f"Not a number of type {rule.kind}"
            return _out_of_range(rule, int(text))
        case SettingKind.DOUBLE:
            number = _DECIMAL.fullmatch(text)
            if number is None:
                return f"Not a number of type {rule.kind}"
            return _out_of_range(rule, float(number[1]))
        case SettingKind.STRING if name == _FORMAT_VERSION:
            if not _VERSION.fullmatch(text):
                return f"Version {value} is not a valid version"
        case _ if rule is _REPLICAS:
            if text != "*" and not all(map(_REPLICA.fullmatch, _words(text))):
                return (
                    f"{name} must be the literal '*' or a list of replicas in the following "
                    "format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                )
        case _:
            words = _words(text) if rule.kind is SettingKind.LIST else [value]
            if not {*words} <= {*rule.allowed}:
                return f"String must be one of: {', '.join(rule.allowed)}"
    return None


def _out_of_range(rule: SettingRule, number: float) -> str | None:
    if rule.also is not None and rule.low is not None and rule.high is not None:
        if number == rule.also or rule.low <= number <= rule.high:
            return None
        return f"Value must be between {rule.low} and {rule.high} or equal to {rule.also}"
    if rule.low is not None and number < rule.low:
        return f"Value must be at least {rule.low}"
    if rule.high is not None and number > rule.high:
        return f"Value must be no more than {rule.high}"
    return None


def _shown(rule: SettingRule, name: str, value: str) -> str:
    """A value as Kafka prints it, which depends on whether it could be parsed."""
    text = value.strip()
    if rule is _REPLICAS:
        return f"[{', '.join(_words(text))}]"
    if rule.kind is SettingKind.LIST:
        return next(word for word in _words(text) if word not in rule.allowed)
    is_number = _reason(name, SettingRule(rule.kind), value) is None
    if rule.kind is SettingKind.DOUBLE and is_number:
        return str(float(text.rstrip("fFdD")))
    return str(int(text)) if rule.kind in _BITS and is_number else value


def _words(text: str) -> list[str]:
    return re.split(r"\s*,\s*", text) if text else []
