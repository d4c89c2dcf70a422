"""The options of every command of ``upgrade``: where the cluster's state is read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from featurewatch.cli.command_line import Exit, Option
from featurewatch.cli.config import options
from featurewatch.cli.config.cluster_options import Json, shared_options
from featurewatch.cli.config.learned_releases import choose_releases_of
from featurewatch.cli.config.options import ADDRESSES

if TYPE_CHECKING:
    from featurewatch.monitor.upgrade import Precondition

ANY_SERVER: Final = "--bootstrap-server HOST:PORT"
"""Stands for the cluster in commands to copy, where nothing is known of its addresses."""


def _text(name: str, metavar: str, help_text: str) -> Any:
    return Annotated[str | None, Option(name, metavar=metavar, help=help_text)]


_SHARED: Final[dict[str, Any]] = {
    "bootstrap_controller": _text(
        "--bootstrap-controller",
        ADDRESSES,
        "Controllers, to read the cluster directly, without a worker.",
    ),
    "bootstrap_server": _text(
        "--bootstrap-server",
        ADDRESSES,
        "Brokers to query for nodes, quorum and settings, and to send changes to.",
    ),
    "log_directory": Annotated[
        Path | None,
        Option(
            "--log-directory",
            metavar="DIRECTORY",
            help="Metadata log directory to read instead, such as a copy of one.",
        ),
    ],
    "zookeeper": _text(
        "--zookeeper", "HOST:PORT,.../CHROOT", "The ZooKeeper of a cluster in ZooKeeper mode."
    ),
    "cluster": _text("--cluster", "ID", "The cluster, by its id or name, where several are known."),
    "command_config": Annotated[
        Path | None,
        Option("--command-config", metavar="FILE", help="Properties file: TLS and SASL."),
    ],
    "controllers_config": Annotated[
        Path | None,
        Option(
            "--controllers-config",
            metavar="FILE",
            help="Properties file: TLS and SASL to the controllers, if they have their own.",
        ),
    ],
    "zookeeper_config": Annotated[
        Path | None,
        Option(
            "--zookeeper-config",
            metavar="FILE",
            help="Properties file: TLS and SASL to its ZooKeeper.",
        ),
    ],
    "bus": _text("--bus", ADDRESSES, "Brokers of the bus, to read the worker's state from."),
    "prefix": _text("--prefix", "NAME", "Prefix of featurewatch's topic names."),
    "config": Annotated[
        Path | None,
        Option(
            "--config",
            "-c",
            metavar="FILE",
            help="YAML file with settings.",
            envvar="FEATUREWATCH_CONFIG",
            check=choose_releases_of,
        ),
    ],
    "as_json": Json,
}

AcceptOption = Annotated[
    list[str] | None,
    Option(
        "--accept",
        metavar="CHECK",
        help="Name of a check to pass whatever its result; the output shows it. Repeatable.",
    ),
]
PlanOption = Annotated[
    Path, Option("--plan", metavar="FILE", help="The plan, as `upgrade plan --out` wrote it.")
]
RunningOption = Annotated[
    str,
    Option(
        "--running",
        metavar="RELEASE",
        help="In ZooKeeper mode: the release of all brokers, which ZooKeeper does not have.",
    ),
]


class NotReadExit(Exit):
    """The end of a command whose cluster was not read; ``reason`` is the line on stderr."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class UpgradeSource:
    """Where the state is read: of the cluster itself, if an address or directory is given, else
    from the worker's topics."""

    servers: str
    controllers: str
    zookeeper: str
    log_directory: Path | None
    cluster: str
    command_config: Path | None
    controllers_config: Path | None
    zookeeper_config: Path | None
    bus: dict[str, Any]
    config: Path | None
    as_json: bool

    @property
    def is_direct(self) -> bool:
        """Whether the cluster itself is read, and no worker."""
        return bool(self.controllers or self.log_directory or self.zookeeper)

    def flags(self) -> list[dict[str, Any]]:
        """The section ``clusters`` of the settings."""
        return options.cluster_flags(
            controllers=self.controllers,
            servers=self.servers,
            log_directory=self.log_directory,
            zookeeper=self.zookeeper,
            cluster_id=self.cluster,
            command_config=self.command_config,
            controllers_config=self.controllers_config,
            zookeeper_config=self.zookeeper_config,
        )

    def read_options(self) -> str:
        """The options that name the cluster, for commands to copy."""
        named = {
            "--bootstrap-controller": self.controllers,
            "--bootstrap-server": self.servers,
            "--log-directory": self.log_directory,
            "--zookeeper": self.zookeeper,
            "--cluster": self.cluster,
            "--command-config": self.command_config,
            "--controllers-config": self.controllers_config,
            "--zookeeper-config": self.zookeeper_config,
            "--bus": self.bus.get("bootstrap_servers"),
            "--prefix": self.bus.get("prefix"),
            "--config": self.config,
        }
        return " ".join(f"{name} {value}" for name, value in named.items() if value)

    def change_options(self) -> str:
        """The options of a command that changes levels."""
        if self.servers:
            where = f"--bootstrap-server {self.servers}"
        elif self.controllers:
            where = f"--bootstrap-controller {self.controllers}"
        else:
            where = ANY_SERVER
        login = self.command_config if self.servers else self.controllers_config
        login = login or self.command_config
        return f"{where} --command-config {login}" if login else where

    def with_addresses(self, checks: "Iterable[Precondition]") -> "tuple[Precondition, ...]":
        """The checks; commands in their remedies name this cluster."""
        named = self.change_options()
        return tuple(
            check._replace(remedy=check.remedy.replace(ANY_SERVER, named)) for check in checks
        )


def _run(given: dict[str, Any], command: Callable[[UpgradeSource], Any]) -> None:
    source = UpgradeSource(
        servers=given["bootstrap_server"] or "",
        controllers=given["bootstrap_controller"] or "",
        zookeeper=given["zookeeper"] or "",
        log_directory=given["log_directory"],
        cluster=given["cluster"] or "",
        command_config=given["command_config"],
        controllers_config=given["controllers_config"],
        zookeeper_config=given["zookeeper_config"],
        bus=options.bus_flags(given["bus"] or "", given["prefix"] or ""),
        config=given["config"],
        as_json=bool(given["as_json"]),
    )
    try:
        command(source)
    except NotReadExit as end:
        if source.as_json:
            _print_not_read(source, end.reason)
        raise


def _print_not_read(source: UpgradeSource, reason: str) -> None:
    """A document with the fields that those of all commands have, and nothing that is not known."""
    # Here, so that help needs no engines.
    from featurewatch.cli.output import rendering
    from featurewatch.controller.compatibility import Verdict
    from featurewatch.monitor.upgrade import Precondition

    log = Precondition("log", Verdict.UNKNOWN, reason, waits=True)
    document = {
        "cluster": source.cluster or None,
        "verdict": Verdict.UNKNOWN,
        "reasons": [reason],
        "checks": [log._asdict()],
    }
    rendering.print_json(document)


def release_name(given: str, option: str = "--running") -> str:
    """The release that an option names (empty: none is given); raises `UsageError`."""
    # Here, so that help needs no releases.
    from featurewatch.cli.errors import UsageError
    from featurewatch.controller.kraft.releases import UnknownReleaseError, release_of

    try:
        return release_of(given).name if given else ""
    except UnknownReleaseError as error:
        raise UsageError(f"{option}: {error}") from None


with_source = shared_options(_SHARED, _run)
"""Adds the shared options to a command; its first argument is their `UpgradeSource`."""
