"""Loads only the settings of the bus, for commands that only read its topics."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from featurewatch.cli.config.options import bus_flags
from featurewatch.cli.config.values import (
    ENVIRONMENT,
    TOPIC_NAME,
    TOPIC_NAME_LENGTH,
    checked_addresses,
)
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import PREFIX

if TYPE_CHECKING:
    from featurewatch.cli.config.settings import Settings

_NO_SETTING: Final = "FEATUREWATCH_CACHE"


def load_bus(config: Path | None, bus: str, prefix: str) -> BusSettings:
    """The bus by flag, environment and file, as `settings.load` has it; raises `UsageError`.

    Where flags alone name it, the settings are not loaded: pydantic takes longer than the topics.
    """
    settings = None if config or _is_environment_set() else _from_flags(bus, prefix)
    return settings or _loaded(config, bus, prefix).bus_settings()


def _from_flags(bus: str, prefix: str) -> BusSettings | None:
    """None without a bus or on any error, which loading the settings then reports."""
    try:
        servers = checked_addresses(bus)
    except ValueError:
        return None
    name = prefix or PREFIX
    if not servers or len(name) > TOPIC_NAME_LENGTH or not re.fullmatch(TOPIC_NAME, name):
        return None
    return BusSettings(servers, prefix=name)


def _is_environment_set() -> bool:
    names = (name.upper() for name in os.environ)
    return any(name.startswith(ENVIRONMENT) and name != _NO_SETTING for name in names)


def _loaded(config: Path | None, bus: str, prefix: str) -> "Settings":
    from featurewatch.cli.config.settings import load

    return load(config, bus=bus_flags(bus, prefix))
