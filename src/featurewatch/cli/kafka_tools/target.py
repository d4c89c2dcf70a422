"""The cluster that a command reads or changes: its client, and the lines of a failure.

    async def list_topics(target: AdminTarget) -> None:
        async with target.connect(TopicMetadataReader) as client:
            print_lines(await client.list_topics())

Which address, which login, which exit code, and which line for what is unknown, are the same for
the commands of all tools.
"""

import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar

from featurewatch.cli.command_line import Exit
from featurewatch.cli.config.client_config import read_client_config
from featurewatch.cli.config.cluster_options import Compat
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.kafka_tools.errors import KafkaToolError, KafkaUsageError, api_failure
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line, print_note
from featurewatch.kafka.address import Address, parse_addresses

if TYPE_CHECKING:
    from featurewatch.admin.kip4.client import DraftAdminClient
    from featurewatch.admin.session import AdminSession
    from featurewatch.cli.kafka_tools.session import ClientSession
    from featurewatch.kafka.client_properties import ClientConfig

_CLIENT = TypeVar("_CLIENT", bound="AdminSession")
_TIMEOUT_S: Final = 60.0
_CONNECT_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Tool:
    """How the commands of a group report failures, which is how Kafka's tool does.

    ``shown_by`` is the command that shows ``check_hint`` after a change whose outcome is unknown.
    ``prefix`` precedes the tool's texts, which go to stdout, or to stderr if ``to_stderr``.
    ``has_documents``: with ``--json`` a failure is a document, too.
    """

    shown_by: str
    check_hint: str = "what is the case"
    prefix: str = ""
    to_stderr: bool = False
    has_documents: bool = False


FEATURES: Final = Tool("featurewatch features describe", "what is finalized now", to_stderr=True)
TOPICS: Final = Tool(
    "featurewatch topics describe",
    "what there is now",
    prefix="Error while executing topic command : ",
)
CLUSTER: Final = Tool(
    "featurewatch readiness", "which nodes are registered now", to_stderr=True, has_documents=True
)
REASSIGN: Final = Tool("featurewatch reassign list", has_documents=True)
ELECT: Final = Tool(
    "featurewatch elect preferred --all-topic-partitions --dry-run",
    to_stderr=True,
    has_documents=True,
)
QUORUM: Final = Tool(
    "featurewatch quorum describe --status", "who votes now", to_stderr=True, has_documents=True
)


KIP_4: Final = Tool(
    "featurewatch topics describe --dialect kip-4",
    "what there is now",
    to_stderr=True,
    has_documents=True,
)
"""No tool of Kafka sends the draft's requests, so failures are lines on stderr."""


@dataclass(slots=True)
class AdminTarget:
    """Addresses of the cluster, and the form of what is printed.

    ``compat`` is the release whose tool is followed, ``timeout_s`` how long the cluster may take
    (None: as the properties file has it, or a minute). With ``is_kip_4`` the requests are those of
    KIP-4's draft.
    """

    tool: Tool
    servers: str
    controllers: str
    command_config: Path | None
    as_json: bool
    compat: Compat = Compat.NEWEST
    timeout_s: float | None = None
    is_kip_4: bool = False
    _session: "ClientSession | None" = field(default=None, init=False, repr=False)
    _is_changing: bool = field(default=False, init=False, repr=False)

    @property
    def flag(self) -> str:
        """The option that names the cluster, for suggested commands."""
        if self.servers:
            return f"--bootstrap-server {self.servers}"
        return f"--bootstrap-controller {self.controllers}"

    def addresses(self) -> tuple[Address, ...]:
        """The bootstrap addresses; raises `UsageError`."""
        if not (self.servers or self.controllers):
            raise UsageError(
                "no cluster is named: pass --bootstrap-server or --bootstrap-controller"
            )
        if self.servers and self.controllers:
            raise UsageError("pass --bootstrap-server or --bootstrap-controller, not both")
        try:
            addresses = parse_addresses(self.servers or self.controllers)
        except ValueError as error:
            raise UsageError(f"{self.flag.split()[0]}: {error}") from None
        if not addresses:
            raise UsageError("no cluster is named: the address is empty")
        return addresses

    def run(self, command: Callable[[Self], Coroutine[Any, Any, None] | None]) -> None:
        """Runs a command; a failure of the cluster is the tool's text, or one line on stderr.

        Raises:
            UsageError: The request is impossible.
            Exit: Any other failure.
        """
        try:
            work = command(self)
            if work is not None:
                from featurewatch.cli.kafka_tools.session import command_session

                with command_session() as self._session:
                    self._session.run(work)
        except KeyboardInterrupt:
            if self._is_changing:
                print_error(
                    f"interrupted; check whether anything was changed: {self._check_command}"
                )
            raise
        except KafkaToolError as error:
            self.fail(error)
        except Exception as error:
            self._end(error)
            raise

    @asynccontextmanager
    async def connect(
        self,
        kind: type[_CLIENT],
        *,
        changes: bool = False,
        config: "ClientConfig | None" = None,
        **options: Any,
    ) -> AsyncIterator[_CLIENT]:
        """A client of the cluster, with additional options of its class.

        ``changes``: Ctrl-C within the block may leave something changed, which a line then says.
        ``config`` is what was read of the properties file already.

        Raises:
            UsageError: An address or the properties file is wrong, or the command has no form in
                KIP-4's draft.
        """
        from featurewatch.admin.connections import Bootstrap
        from featurewatch.kafka.connection import CLIENT_ID

        if self.is_kip_4:
            from featurewatch.cli.kafka_tools.kip_4 import NO_REQUEST

            raise UsageError(NO_REQUEST)
        assert self._session is not None  # noqa: S101 - `run` has set it
        addresses = self.addresses()
        config = config or read_client_config(self.command_config)
        bootstrap = Bootstrap(
            addresses,
            controllers=not self.servers,
            security=config.security,
            is_kip_778=options.get("dialect") == "kip-778",
            client_id=config.network.client_id or CLIENT_ID,
        )
        timeout_s = self.timeout_s or config.network.api_timeout_s or _TIMEOUT_S
        connect_timeout_s = min(config.network.connect_timeout_s or _CONNECT_TIMEOUT_S, timeout_s)
        connections = await self._session.connections(bootstrap, connect_timeout_s)
        client = kind(
            bootstrap,
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            connections=connections,
            network=config.network,
            **options,
        )
        self._is_changing = changes
        try:
            async with client:
                yield client
        finally:
            await connections.rest()
        self._is_changing = False

    @asynccontextmanager
    async def connect_kip_4(self, *, changes: bool = False) -> "AsyncIterator[DraftAdminClient]":
        """A client that sends the requests of KIP-4's draft; otherwise as `connect`."""
        from featurewatch.admin.kip4.client import DraftAdminClient

        self.addresses()
        properties = dict(read_client_config(self.command_config).properties)
        if self.timeout_s is not None:
            properties["default.api.timeout.ms"] = str(max(1, round(self.timeout_s * 1000)))
        async with DraftAdminClient.connect(self.servers, config=properties) as client:
            self._is_changing = changes
            yield client
        self._is_changing = False

    def fail(self, error: KafkaToolError) -> NoReturn:
        """Ends the command with 1, as the tool does, and with lines of ours on stderr."""
        sys.stdout.flush()
        text, remarks = error.text and self.tool.prefix + error.text, list(error.remarks())
        if isinstance(error, KafkaUsageError):
            print_note(error.text)
        elif self.as_json and self.tool.has_documents:
            if text or remarks:
                self.document(lambda: {"error": text.removeprefix("Error: ") or remarks[0]})
        elif self.as_json and not self.tool.to_stderr:
            print_error(text)
        elif text:
            # Texts that nodes send have no line of their own where the tool prints one line.
            for line in text.split("\n") if self.tool.has_documents else [text]:
                (print_note if self.tool.to_stderr else print_line)(line)
        for remark in remarks:
            print_error(remark)
        raise Exit(ExitCode.FAILED)

    def lines(self, lines: Iterable[str]) -> None:
        """Prints lines of the tool on stdout, unless a document is printed instead."""
        for line in lines:
            self.line(line)

    def line(self, text: str) -> None:
        """Prints one line of the tool, as `lines` does."""
        if not self.as_json:
            print_line(text)

    def document(self, document: Callable[[], dict[str, Any]]) -> None:
        """Prints the document, if one is wanted."""
        if self.as_json:
            import json

            print_json_text(json.dumps(document(), indent=2, ensure_ascii=False))

    @property
    def _check_command(self) -> str:
        return f"{self.tool.shown_by} {self.flag}"

    def _end(self, error: Exception) -> None:
        """Ends the command if the error is a client's."""
        from featurewatch.admin.api_errors import ResponseError
        from featurewatch.admin.errors import (
            AdminError,
            KafkaApiError,
            OutcomeUnknownError,
            RequestError,
        )

        if isinstance(error, KafkaApiError) and not self.tool.prefix:
            self.fail(api_failure(ResponseError(error.code, str(error), error.right)))
        if isinstance(error, KafkaApiError | RequestError) and self.tool.prefix:
            self.fail(KafkaToolError(str(error), right=getattr(error, "right", "")))
        if isinstance(error, RequestError):
            raise UsageError(str(error)) from None
        if isinstance(error, OutcomeUnknownError):
            print_error(f"{error}; see {self.tool.check_hint}: {self._check_command}")
            raise Exit(ExitCode.UNKNOWN) from None
        if isinstance(error, AdminError):
            print_error(str(error))
            raise Exit(ExitCode.FAILED) from None
