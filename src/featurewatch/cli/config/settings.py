"""Settings: flag over environment (``FEATUREWATCH_…``) over one YAML file."""

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib.util import find_spec
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from featurewatch.agents.settings import WorkerSettings, default_directory
from featurewatch.cli.config.client_config import read_client_config
from featurewatch.cli.config.notify_settings import NotifySection
from featurewatch.cli.config.validation import explain_validation_error
from featurewatch.cli.config.values import (
    ENVIRONMENT,
    TOPIC_NAME,
    TOPIC_NAME_LENGTH,
    WORKER_ID,
    checked_addresses,
    checked_node_addresses,
)
from featurewatch.cli.errors import UsageError
from featurewatch.common import yaml_file
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.common.http.clients import is_loopback
from featurewatch.common.http.errors import WebConfigError
from featurewatch.common.text import plain, shortened
from featurewatch.integrations.notify.settings import DEFAULT_PORT as DEFAULT_NOTIFY_PORT
from featurewatch.integrations.notify.settings import NotifySettings
from featurewatch.kafka.address import parse_addresses
from featurewatch.kafka.releases.directory import (
    VARIABLE,
    default_releases_directory,
    releases_directory,
)
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.pipeline.replay.bundle_limits import DEFAULT_BUNDLE_LIMITS, BundleLimits
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.kraft.snapshot_spool import DEFAULT_MAX_SNAPSHOT_BYTES
from featurewatch.streams.zookeeper.bounded_socket import DEFAULT_MAX_FRAME_BYTES
from featurewatch.streams.zookeeper.settings import parse_hosts
from featurewatch.web.settings import DEFAULT_PORT, PageSettings


def _ensemble(text: str) -> str:
    if text.strip():
        parse_hosts(text)
    return text.strip()


def _network(text: str) -> str:
    ip_network(text, strict=False)
    return text


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ValueError("write the whole address, https://host/path/")
    return text


Addresses = Annotated[str, AfterValidator(checked_addresses)]
NodeAddresses = Annotated[str, AfterValidator(checked_node_addresses)]
Ensemble = Annotated[str, AfterValidator(_ensemble)]
Lasting = Annotated[float, Field(gt=0, allow_inf_nan=False)]
TopicName = Annotated[str, Field(pattern=TOPIC_NAME, max_length=TOPIC_NAME_LENGTH)]


_SettingsT = TypeVar("_SettingsT", BusSettings, WorkerSettings, PageSettings)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class BusSection(_Section):
    """The Kafka cluster that has featurewatch's own topics."""

    bootstrap_servers: Addresses = ""
    """host:port,… (empty: the embedded bus, which `featurewatch up` starts)"""
    command_config: Path | None = None
    """a properties file for TLS and SASL, as Kafka's tools or librdkafka take it"""
    prefix: TopicName = "featurewatch"
    """the first part of all topic names"""
    partitions: Annotated[int, Field(ge=1)] = 8
    """partitions of each topic"""
    replication_factor: Annotated[int, Field(ge=-1)] = -1
    """-1: three, or as many as the bus has brokers"""
    accepted_clusters: list[str] = []
    """ids of the clusters whose messages count (empty: all), for worker and pipeline alike"""


class ClusterSection(_Section):
    """A watched cluster: one entry, with at least one of the ways to watch it."""

    cluster_id: str = ""
    """its id; may be left out if brokers or controllers return it"""
    name: Annotated[str, Field(max_length=100)] = ""
    """its display name, shown with its id in state, alerts, metrics and notifications"""
    controllers: Addresses = ""
    """host:port,… of controller listeners: the metadata log is followed (needs CLUSTER_ACTION)"""
    servers: Addresses = ""
    """host:port,… of brokers: every node is asked for its features (no special rights)"""
    polled_controllers: NodeAddresses = ""
    """id@host:port,… of controllers to ask for their features, where brokers do not list them"""
    log_directory: Path | None = None
    """a mounted __cluster_metadata-0: the log is followed there, read only"""
    zookeeper: Ensemble = ""
    """host:port,…/chroot of its ZooKeeper: brokers and features are followed there, read only"""
    command_config: Path | None = None
    """a properties file for TLS and SASL towards its nodes"""
    controllers_config: Path | None = None
    """a properties file for TLS and SASL towards its controllers (default: command_config)"""
    zookeeper_config: Path | None = None
    """a properties file for TLS and SASL (DIGEST-MD5, GSSAPI) towards its ZooKeeper"""
    records: Literal["features", "all"] = "features"
    """publish only records and znodes that features depend on, or all except secrets"""
    operations: bool = False
    """also publish topics and partitions of its metadata log, for the worker's operations"""
    max_snapshot_bytes: Annotated[int, Field(ge=1)] = DEFAULT_MAX_SNAPSHOT_BYTES
    """reject larger snapshots of its metadata log; up to this much space is needed in TMPDIR"""
    max_zookeeper_frame_bytes: Annotated[int, Field(ge=1)] = DEFAULT_MAX_FRAME_BYTES
    """close the connection on a larger ZooKeeper response; at least the servers' jute.maxbuffer"""

    @property
    def provisional_id(self) -> str:
        """The name of the cluster before its id is known."""
        addresses = (self.controllers, self.servers, self.polled_controllers, self.zookeeper)
        return next(filter(None, (self.cluster_id, *addresses)), str(self.log_directory))


def _different_clusters(clusters: list[ClusterSection]) -> list[ClusterSection]:
    """The clusters, if all are different; raises `ValueError` otherwise."""
    first_by_value: dict[tuple[str, str], int] = {}
    for number, cluster in enumerate(clusters, start=1):
        for kind, value in _identities(cluster):
            first = first_by_value.setdefault((kind, value), number)
            if first != number:
                raise ValueError(
                    f"entries {first} and {number} both have {kind} {value}: write one entry for a "
                    "cluster, with all its addresses"
                )
    return clusters


def _identities(cluster: ClusterSection) -> Iterator[tuple[str, str]]:
    """The values that must be unique to a cluster."""
    if cluster.cluster_id:
        yield "cluster_id", cluster.cluster_id
    if cluster.name:
        yield "name", cluster.name
    for kind in ("controllers", "servers"):
        for address in parse_addresses(getattr(cluster, kind)):
            yield kind, str(address)
    if cluster.zookeeper:
        yield "zookeeper", cluster.zookeeper
    if cluster.log_directory is not None:
        yield "log_directory", str(cluster.log_directory.absolute())


class WorkerSection(_Section):
    """The worker."""

    id: Annotated[str, Field(pattern=WORKER_ID, max_length=TOPIC_NAME_LENGTH)] = ""
    """its own id in the consumer group (empty: derived from the host name)"""
    store: Literal["memory", "rocksdb"] = "memory"
    """where tables are kept while it runs"""
    data_directory: Path = Field(default_factory=default_directory)
    """directory for data that outlives a process on this machine"""
    silent_after_s: Annotated[float, Field(gt=0)] = 20.0
    """alert when a source has been silent for this many seconds"""
    operations: bool = False
    """also follow operations on topics and partitions, for clusters whose source publishes them"""
    node_series: Annotated[int, Field(ge=0)] = 200
    """largest number of nodes of a cluster for which metrics name single nodes"""
    max_series: Annotated[int, Field(gt=0)] = 20_000
    """largest number of series of all clusters in the metrics; series beyond it are counted"""


class ReadinessSection(_Section):
    """How long a condition may last before it is an alert; the same for worker and pipeline."""

    ghost_after_s: Lasting = 3600.0
    """a registration without a sign of life of its node"""
    upgrade_after_s: Lasting = 86_400.0
    """nodes that run two releases, or levels that could be finalized and are not"""
    refusal_after_s: Lasting = 60.0
    """a node that would be refused at its next registration; a restart takes a moment"""
    quorum_after_s: Lasting = 300.0
    """a metadata quorum that can lose no voter, or a controller that follows and does not vote"""
    source_stalled_after_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 4.0
    """a source that reads nothing, until that is an alert; an election takes a moment"""
    source_critical_after_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 60.0
    """a source that reads nothing is a warning, and becomes critical after this long"""
    unreadable_ends_after_s: Lasting = 3600.0
    """end the alert about unreadable input after this long without more of its kind"""


class WebSection(_Section):
    """The page, and /metrics, /healthz and /readyz of sources, worker and notifications."""

    config_file: Path | None = None
    """a file with TLS, users and headers of all these ports, as Prometheus' exporters take it"""
    token_file: Path | None = None
    """a file with bearer tokens, one per line, for all these ports"""
    proxies: list[Annotated[str, AfterValidator(_network)]] = ["127.0.0.0/8", "::1"]
    """addresses and networks of proxies, whose X-Forwarded-For names the client that is limited"""
    max_requests_per_s: Lasting = 100.0
    """largest request rate of one client (bursts: that of five seconds); more are refused"""
    host: str = "127.0.0.1"
    """where sources, worker and notifications listen"""
    source_port: Annotated[int, Field(ge=0, le=65535)] = 9584
    """port of the process that watches (0: any free port)"""
    worker_port: Annotated[int, Field(ge=0, le=65535)] = 9778
    """port of the worker (0: any free port)"""
    page_host: str = "127.0.0.1"
    """where the page listens"""
    page_port: Annotated[int, Field(ge=0, le=65535)] = DEFAULT_PORT
    """port of the page (0: any free port)"""
    page_without_login: bool = False
    """allow the page to listen where other machines reach it without requiring a login"""
    notify_port: Annotated[int, Field(ge=0, le=65535)] = DEFAULT_NOTIFY_PORT
    """port of the process that notifies (0: any free port)"""
    external_url: Annotated[str, AfterValidator(_web_address)] = ""
    """http(s)://… under which a proxy serves the page"""
    max_streams: Annotated[int, Field(gt=0)] = 200
    """largest number of pages updated live at the same time; more are refused"""
    max_streams_per_client: Annotated[int, Field(gt=0)] = 50
    """the same limit for one client"""

    def access(self, *, must_have_login: bool = False) -> AccessSettings:
        """The access rules of a port; raises `UsageError` if one of their files cannot be used."""
        access = AccessSettings(
            self.config_file,
            self.token_file,
            must_have_login,
            tuple(self.proxies),
            self.max_requests_per_s,
        )
        try:
            access.files.read()
        except WebConfigError as error:
            raise UsageError(f"web.config_file and web.token_file: {error}") from None
        return access


class ReplaySection(_Section):
    """Limits of the unpacked content of one support bundle."""

    max_unpacked_bytes: Annotated[int, Field(gt=0)] = DEFAULT_BUNDLE_LIMITS.max_unpacked_bytes
    """largest total size of the files that are unpacked from it, in bytes"""
    max_compression_ratio: Lasting = DEFAULT_BUNDLE_LIMITS.max_compression_ratio
    """largest number of unpacked bytes per byte of an archive"""
    unmeasured_bytes: Annotated[int, Field(ge=0)] = DEFAULT_BUNDLE_LIMITS.unmeasured_bytes
    """unpacked bytes of an archive for which that number does not count"""
    max_files: Annotated[int, Field(gt=0)] = DEFAULT_BUNDLE_LIMITS.max_files
    """largest number of files in it, whether they are used or not"""
    max_archive_depth: Annotated[int, Field(gt=0)] = DEFAULT_BUNDLE_LIMITS.max_archive_depth
    """deepest nesting of archives; 1 is the bundle itself"""


class ReleasesSection(_Section):
    """The tables of releases that this version of featurewatch does not have: `releases learn`."""

    directory: Path = Field(default_factory=default_releases_directory)
    """files that `featurewatch releases learn` wrote; every process reads them when it starts"""


class Settings(BaseSettings):
    """All settings, with their defaults."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT, env_nested_delimiter="__", extra="forbid"
    )

    bus: BusSection = Field(default_factory=BusSection)
    clusters: Annotated[list[ClusterSection], AfterValidator(_different_clusters)] = Field(
        default_factory=list
    )
    worker: WorkerSection = Field(default_factory=WorkerSection)
    readiness: ReadinessSection = Field(default_factory=ReadinessSection)
    web: WebSection = Field(default_factory=WebSection)
    notify: NotifySection = Field(default_factory=NotifySection)
    replay: ReplaySection = Field(default_factory=ReplaySection)
    releases: ReleasesSection = Field(default_factory=ReleasesSection)

    def bus_settings(self) -> BusSettings:
        """The settings of the bus; of the embedded one if none is named.

        Raises:
            UsageError: No bus is named and none is embedded, or a file cannot be read.
        """
        servers = self.bus.bootstrap_servers or embedded_bus(self.worker.data_directory)
        return _passed_on(
            self.bus,
            BusSettings,
            bootstrap_servers=servers,
            properties=read_client_config(self.bus.command_config).properties,
        )

    def worker_settings(self) -> WorkerSettings:
        """The worker's settings; raises `UsageError`."""
        worker = self.worker
        if worker.store == "rocksdb" and find_spec("rocksdict") is None:
            raise UsageError("the store rocksdb needs: pip install 'featurewatch[rocksdb]'")
        return _passed_on(
            worker,
            WorkerSettings,
            bus=self.bus_settings(),
            worker_id=worker.id,
            limits=replace(self.limits(), partitions=self.bus.partitions),
        )

    def page_settings(self) -> PageSettings:
        """The page's settings; raises `UsageError` if others could read it without a login."""
        web = self.web
        must_have_login = not is_loopback(web.page_host) and not web.page_without_login
        if must_have_login and web.config_file is None and web.token_file is None:
            raise UsageError(
                f"web.page_host is {web.page_host}: other machines could read the page, which has "
                "no login: give it one with web.config_file or web.token_file, listen on 127.0.0.1 "
                "behind a proxy that has one, or set web.page_without_login"
            )
        return _passed_on(
            web,
            PageSettings,
            host=web.page_host,
            port=web.page_port,
            access=web.access(must_have_login=must_have_login),
        )

    def notify_settings(self) -> NotifySettings:
        """Where alerts are sent; raises `UsageError` for a file that cannot be read."""
        return self.notify.targets(
            self.web.external_url,
            {
                entry.cluster_id: entry.name
                for entry in self.clusters
                if entry.cluster_id and entry.name
            },
        )

    def limits(self) -> Limits:
        """How long a condition may last, for the worker and all else that assesses as it does."""
        given = self.readiness
        return Limits(
            ghost_ms=round(given.ghost_after_s * 1000),
            upgrade_ms=round(given.upgrade_after_s * 1000),
            refusal_ms=round(given.refusal_after_s * 1000),
            quorum_ms=round(given.quorum_after_s * 1000),
            hold_ms=round(given.source_stalled_after_s * 1000),
            source_ms=round(given.source_critical_after_s * 1000),
            quiet_ms=round(given.unreadable_ends_after_s * 1000),
            accepted_clusters=frozenset(self.bus.accepted_clusters),
            operations=self.worker.operations,
        )

    def with_operations(self) -> Self:
        """These settings with the operations of every cluster followed."""
        clusters = [cluster.model_copy(update={"operations": True}) for cluster in self.clusters]
        worker = self.worker.model_copy(update={"operations": True})
        return self.model_copy(update={"clusters": clusters, "worker": worker})

    def bundle_limits(self) -> BundleLimits:
        """Limits of the unpacked content of one support bundle."""
        return BundleLimits(**self.replay.model_dump())


def _passed_on(section: _Section, settings: type[_SettingsT], **given: Any) -> _SettingsT:
    """The settings of a part of the program: what is given, and settings of the same names."""
    names = {field.name for field in fields(settings)} & type(section).model_fields.keys()
    same = {name: getattr(section, name) for name in names - given.keys()}
    return settings(**same, **given)


def load(file: Path | None, **flags: dict[str, Any] | list[dict[str, Any]]) -> Settings:
    """The settings from all three places; ``flags`` are sections with what was given by flag.

    Raises:
        UsageError: Something is wrong with them: the text names the field and what it must be.
    """
    named = file or (Path(path) if (path := os.environ.get("FEATUREWATCH_CONFIG")) else None)
    content = _read(named) if named is not None else {}

    class Loaded(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - neither is used
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            file_settings = InitSettingsSource(settings_cls, init_kwargs=content)
            return init_settings, env_settings, file_settings

    try:
        loaded = Loaded(**{name: given for name, given in flags.items() if given})  # type: ignore[arg-type]
    except ValidationError as error:
        reason = explain_validation_error(error, Settings, named, content)
        raise UsageError(shortened(plain(reason))) from None
    except SettingsError as error:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        raise UsageError(f"the environment cannot be read: {error}{cause}: write JSON") from None
    if loaded.releases.directory.expanduser().absolute() != releases_directory().absolute():
        raise UsageError(
            "releases.directory must be in a regular file, since tables are read before the "
            f"settings: set {VARIABLE} instead"
        )
    # Of the one class, so that equal settings compare equal.
    return Settings.model_construct(loaded.model_fields_set, **dict(loaded))


def _read(file: Path) -> dict[str, Any]:
    """The sections of a configuration file; raises `UsageError`."""
    try:
        content = yaml_file.read(file, typed=True)
    except yaml_file.YamlError as error:
        raise UsageError(f"the configuration file {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        sections = ", ".join(Settings.model_fields)
        raise UsageError(f"{file} must have sections on its first level: {sections}")
    return content


def embedded_bus_file(data_directory: Path) -> Path:
    """The file in which a running embedded bus writes its address."""
    return data_directory / "bus" / "bootstrap-servers"


def embedded_bus(data_directory: Path) -> str:
    """The address of the embedded bus; raises `UsageError` if none runs."""
    file = embedded_bus_file(data_directory)
    try:
        return file.read_text().strip()
    except OSError:
        raise UsageError(
            "no bus is named and none is embedded here: pass --bus HOST:PORT, set "
            "FEATUREWATCH_BUS__BOOTSTRAP_SERVERS, or start one with `featurewatch up`"
        ) from None
