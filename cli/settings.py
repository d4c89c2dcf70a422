"""Settings: flag over environment (``FEATUREWATCH_…``) over one YAML file."""

import os
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from agents.settings import WorkerSettings, default_directory
from cli.errors import UsageError
from cli.properties import read_properties
from streams.bus import BusSettings

ENVIRONMENT = "FEATUREWATCH_"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Bus(_Section):
    """The Kafka cluster that featurewatch's own topics stand on."""

    bootstrap_servers: str = ""
    """host:port,… (empty: the embedded bus, which `featurewatch up` starts)"""
    command_config: Path | None = None
    """a properties file for TLS and SASL, as Kafka's tools or librdkafka take it"""
    prefix: str = "featurewatch"
    """the first part of all topic names"""
    partitions: Annotated[int, Field(ge=1)] = 8
    """partitions of each topic"""
    replication_factor: Annotated[int, Field(ge=-1)] = -1
    """-1: the bus' default"""


class Cluster(_Section):
    """A watched cluster: at least one of controllers, servers and log_directory is given."""

    cluster_id: str = ""
    """its id; it may be left out where brokers or controllers tell it"""
    controllers: str = ""
    """host:port,… of controller listeners: the metadata log is followed (needs CLUSTER_ACTION)"""
    servers: str = ""
    """host:port,… of brokers: every node is asked for its features (no special rights)"""
    log_directory: Path | None = None
    """a mounted __cluster_metadata-0: the log is followed there, read only"""
    command_config: Path | None = None
    """a properties file for TLS and SASL towards its nodes"""
    records: Literal["features", "all"] = "features"
    """which records are published: those that features depend on, or all but secrets"""


class Worker(_Section):
    """The worker."""

    id: str = "1"
    """static member of the consumer group; each running worker has its own"""
    store: Literal["memory", "rocksdb"] = "memory"
    """where tables are kept while it runs"""
    data_directory: Path = Field(default_factory=default_directory)
    """what outlives a process on this machine"""
    silent_after_s: Annotated[float, Field(gt=0)] = 20.0
    """after so many seconds without a word of a source an alert fires"""


class Web(_Section):
    """/metrics, /healthz and /readyz."""

    host: str = "127.0.0.1"
    """where to listen; there is no authentication"""
    source_port: Annotated[int, Field(ge=0, le=65535)] = 9584
    """of the process that watches (0: any free port)"""
    worker_port: Annotated[int, Field(ge=0, le=65535)] = 9778
    """of the worker (0: any free port)"""


class Settings(BaseSettings):
    """All settings, with their defaults."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT, env_nested_delimiter="__", extra="forbid"
    )
    file: ClassVar[Path | None] = None

    bus: Bus = Field(default_factory=Bus)
    clusters: list[Cluster] = Field(default_factory=list)
    worker: Worker = Field(default_factory=Worker)
    web: Web = Field(default_factory=Web)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flag over environment over file."""
        del dotenv_settings, file_secret_settings
        yaml_settings = YamlConfigSettingsSource(settings_cls, yaml_file=cls.file)
        return init_settings, env_settings, yaml_settings

    def bus_settings(self) -> BusSettings:
        """The bus as the streams take it; the embedded one where none is named.

        Raises:
            UsageError: No bus is named and none is embedded, or a file cannot be read.
        """
        servers = self.bus.bootstrap_servers or embedded_bus(self.worker.data_directory)
        properties: dict[str, Any] = {}
        if self.bus.command_config is not None:
            properties.update(read_properties(self.bus.command_config))
        return BusSettings(
            servers,
            properties,
            self.bus.prefix,
            self.bus.partitions,
            self.bus.replication_factor,
        )

    def worker_settings(self) -> WorkerSettings:
        """The worker's settings; raises `UsageError`."""
        worker = self.worker
        return WorkerSettings(
            self.bus_settings(),
            worker_id=worker.id,
            store=worker.store,
            data_directory=worker.data_directory,
            silent_after_s=worker.silent_after_s,
        )


def load(file: Path | None, **flags: dict[str, Any] | list[dict[str, Any]]) -> Settings:
    """The settings from all three places; ``flags`` are sections with what was given by flag.

    Raises:
        UsageError: Something is wrong with them: the text names the field and what it must be.
    """
    named = file or (Path(path) if (path := os.environ.get("FEATUREWATCH_CONFIG")) else None)
    if named is not None and not named.is_file():
        raise UsageError(f"there is no configuration file {named}")
    Settings.file = named
    try:
        return Settings(**{name: given for name, given in flags.items() if given})  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"the setting {place} is wrong: {first['msg']}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{named} is no YAML: {' '.join(str(error).split())}") from None


def embedded_bus_file(data_directory: Path) -> Path:
    """Where a running embedded bus says how it is reached."""
    return data_directory / "bus" / "bootstrap-servers"


def embedded_bus(data_directory: Path) -> str:
    """The address of the embedded bus; raises `UsageError` if none runs."""
    file = embedded_bus_file(data_directory)
    try:
        return file.read_text().strip()
    except OSError:
        raise UsageError(
            "no bus is named and none is embedded here: give --bus HOST:PORT, set "
            "FEATUREWATCH_BUS__BOOTSTRAP_SERVERS, or start one with `featurewatch up`"
        ) from None
