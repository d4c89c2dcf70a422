"""The stack that the rows act on: the servers, and featurewatch's own processes."""

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Protocol, Self

from confluent_kafka.admin import AdminClient

from featurewatch.cli.commands.demo.summary import levels_on_disk
from featurewatch.common.private_files import write_private
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import format_properties
from featurewatch.stack.process.ports import LOOPBACK
from tests.faults.certificates import StackCertificates
from tests.faults.outputs import OutputReader
from tests.faults.servers import Servers
from tests.faults.traffic import set_level
from tests.faults.verdict import Level, Outputs, Value
from tests.processes import Process, is_ready, wait_ready

_READY_S: Final = 600.0
_RESTART_S: Final = 1.0
WEB_CONFIG: Final = "http_server_config: {}\n"
FIRST_TOKEN: Final = "the-first-token-of-a-stack"  # noqa: S105 - of a test
NAMES: Final = ".faults.test"
"""The end of host names that lead to the address in the file ``names`` (`tests.faults.names`)."""

_RESOLVER: Final = Path(__file__).parent / "names"


def by_controllers(servers: Servers) -> list[str]:
    """The options of a source that follows the quorum's log."""
    return ["--controllers", servers.controllers, "--cluster-id", servers.quorum.cluster_id]


def with_brokers(servers: Servers) -> list[str]:
    """The options of a source that polls every node too."""
    return [*by_controllers(servers), "--servers", servers.quorum.bootstrap_servers]


def by_names(servers: Servers) -> list[str]:
    """The options of a source that knows names alone (`NAMES`), and the cluster's id."""
    ports = [address.rpartition(":")[2] for address in servers.controllers.split(",")]
    named = [f"controller-{number}{NAMES}:{port}" for number, port in enumerate(ports, 1)]
    return ["--controllers", ",".join(named), "--cluster-id", servers.quorum.cluster_id]


def by_tls(servers: Servers) -> list[str]:
    """The options of a source that reaches the quorum by TLS alone."""
    return ["--controllers", servers.tls_controllers, "--cluster-id", servers.quorum.cluster_id]


Watch = Callable[[Servers], list[str]]


class OutputsSource(Protocol):
    """Where the outputs are read, for the verdict."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def read_again(self) -> None:
        """Reads from the beginning: a topic was recreated."""

    @property
    def outputs(self) -> Outputs:
        """Everything so far."""

    @property
    def firing(self) -> list[str]:
        """The rules that fire now."""

    def alerts_of(self, cluster: str) -> list[Value]:
        """The alerts of another cluster."""

    def wait(self, reached: Callable[[Outputs], object], timeout_s: float) -> bool:
        """Whether the outputs come to it in time."""


class Stack:
    """A source and a worker on separate topics, which a supervisor starts again if they end.

    ``directory`` holds what they write: a directory for each, by its name, and ``tmp``; in
    ``environment``, ``{directory}`` stands for it.
    """

    def __init__(
        self,
        servers: Servers,
        directory: Path,
        environment: Mapping[str, str],
        *,
        store: str = "memory",
        tls: bool = False,
        watch: Watch = by_controllers,
        quorum: Cluster | None = None,
    ) -> None:
        self.servers = servers
        self._watch = watch
        self.quorum = quorum or servers.quorum
        self.bus, self.proxy = servers.bus, servers.proxy
        self.prefix = f"faults-{uuid.uuid4().hex[:8]}"
        self.directory = directory / self.prefix
        self.directory.mkdir()
        (self.directory / "tmp").mkdir()
        self.admin = AdminClient({"bootstrap.servers": self.bus.bootstrap_servers, "log_level": 0})
        self.environment = {
            "FEATUREWATCH_BUS__REPLICATION_FACTOR": "1",
            "FEATUREWATCH_BUS__PARTITIONS": "2",
            # An hour by default: an alert that no quiet time ends is stuck after a minute here.
            "FEATUREWATCH_READINESS__UNREADABLE_ENDS_AFTER_S": "20",
            "TMPDIR": str(self.directory / "tmp"),
            **{name: value.format(directory=self.directory) for name, value in environment.items()},
        }
        if watch is by_names:
            self.environment |= {
                "PYTHONPATH": str(_RESOLVER),
                "FAULTS_NAMES": str(self.directory / "names"),
            }
        (self.directory / "names").write_text(LOOPBACK)
        (self.directory / "web.yaml").write_text(WEB_CONFIG)
        write_private(self.directory / "tokens", FIRST_TOKEN)
        self.certificates = (
            StackCertificates(self.directory, servers.certificates, self.proxy) if tls else None
        )
        self.processes: list[Process] = []
        options = [*self.watched]
        if self.certificates is not None and watch is by_tls:
            properties = self.directory / "quorum.properties"
            files = self.certificates.properties("quorum")
            write_private(properties, format_properties({"security.protocol": "SSL", **files}))
            options += ["--controllers-config", str(properties)]
        self.source = self.add("source", "source", ["watch", *options])
        self.worker = self.add("worker", "worker", ["worker", "--store", store])
        self.ends: list[str] = []
        self.notes: list[str] = []
        """What a fault showed to be wrong, besides the outputs."""
        self._held: set[Process] = set()
        self._stop = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)
        self.serving = [self.source, self.worker]
        """The processes that answer on ``/readyz``."""
        self.reader: OutputsSource = OutputReader(
            self.bus.bootstrap_servers, self.prefix, self.cluster_id
        )

    def add(self, name: str, user: str, arguments: list[str]) -> Process:
        """A process of featurewatch on the bus as one of the users; it is not started yet."""
        login = self.directory / f"{user}.properties"
        content = {
            "security.protocol": "SASL_SSL" if self.certificates else "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": "secret",
        }
        if self.certificates is not None:
            content |= self.certificates.properties("bus")
        write_private(login, format_properties(content))
        on_bus = [
            "--bus",
            self.servers.bus_of["tls" if self.certificates else user],
            "--prefix",
            self.prefix,
        ]
        environment = {"FEATUREWATCH_BUS__COMMAND_CONFIG": str(login), **self.environment}
        process = Process(name, [*arguments, *on_bus], self.directory, environment)
        (self.directory / name).mkdir(exist_ok=True)
        self.processes.append(process)
        return process

    @contextmanager
    def running(self) -> Iterator["Stack"]:
        """The stack, as long as the block; it has read the quorum's log to its end."""
        with ExitStack() as stack:
            stack.callback(self._end)
            stack.enter_context(self.reader)
            if self._watch is with_brokers:
                self._read_log()
            for process in self.processes:
                process.start()
            wait_ready(self.serving, _READY_S)
            self._supervisor.start()
            yield self

    def _read_log(self) -> None:
        """Follows the log alone until it has been read.

        Else the nodes' answers may come first: then changes begin with them, and those that the log
        has before are not published.
        """
        first = self.add("first-source", "source", ["watch", *by_controllers(self.servers)])
        try:
            self.worker.start()
            first.start()
            wait_ready([first, self.worker], _READY_S)
            truth = self.truth()
            self.reader.wait(lambda outputs: len(outputs.changes) >= len(truth), _READY_S)
        finally:
            first.kill()
            self.processes.remove(first)

    def hold(self, *processes: Process) -> None:
        """Kills processes that the supervisor does not start again before `release`."""
        self._held.update(processes)
        for process in processes:
            process.kill()

    def release(self, *processes: Process) -> None:
        """Starts them again."""
        for process in processes:
            process.start()
        self._held.difference_update(processes)

    def topic(self, name: str) -> str:
        """The full name of a topic."""
        return f"{self.prefix}.{name}"

    @property
    def cluster_id(self) -> str:
        """The id of the watched cluster."""
        return self.quorum.cluster_id

    @property
    def watched(self) -> list[str]:
        """The options with which the source watches it."""
        return self._watch(self.servers)

    def set_level(self, feature: str, level: int) -> bool:
        """Finalizes a level in the watched cluster, as `SetLevel`."""
        nodes = [node for node in self.quorum.nodes if node.running and node.broker]
        return set_level([str(node.broker) for node in nodes], feature, level)

    def truth(self) -> list[Level]:
        """All changes of levels, as kafka-dump-log reads them from a controller's disk."""
        return levels_on_disk(self.quorum)

    def wait_outputs(self, truth: list[Level], timeout_s: float) -> None:
        """Waits until state and snapshots have come as far as the changes, as far as they come."""
        levels = {feature: level for feature, level in dict(truth).items() if level}

        def whole(outputs: Outputs) -> bool:
            last = max((change["revision"] for change in outputs.changes), default=0)
            return (
                outputs.state is not None
                and dict(outputs.state["finalized"]) == levels
                and any(epoch["revision"] == last for epoch in outputs.epochs)
            )

        self.reader.wait(whole, timeout_s)

    def are_ready(self) -> bool:
        """Whether each process says so on ``/readyz``."""
        return all(is_ready(process.port) for process in self.serving)

    def _supervise(self) -> None:
        """Starts again what ended on its own, as a service manager would, and notes it."""
        while not self._stop.wait(_RESTART_S):
            for process in [*self.processes]:
                code = process.ended
                if code is not None and process not in self._held:
                    self.ends.append(f"{process.name} ended with {code}")
                    process.start()

    def _end(self) -> None:
        self._stop.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        for process in self.processes:
            process.kill()
        topics = [name for name in self.admin.list_topics(timeout=60).topics if self.prefix in name]
        if topics:
            for future in self.admin.delete_topics(topics).values():
                future.exception()
