"""The cluster whose topics a command manages, and how its failures are printed."""

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from featurewatch.cli.command_line import Exit
from featurewatch.cli.config.client_config import read_client_config
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.kafka_topics import TopicToolError, TopicUsageError, missing_topic
from featurewatch.cli.output.terminal import print_error, print_line, print_note
from featurewatch.streams.net.address import Address, parse_addresses

if TYPE_CHECKING:
    from featurewatch.admin.topics.client import TopicAdmin
    from featurewatch.admin.topics.reader import TopicMetadataReader

_CLIENT = TypeVar("_CLIENT", bound="TopicMetadataReader")
_RESULT = TypeVar("_RESULT")
_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 10.0


class TopicTarget(NamedTuple):
    """Addresses of the cluster, and the form of what is printed.

    ``compat`` is the release whose ``kafka-topics`` is followed.
    """

    servers: str
    command_config: Path | None
    as_json: bool
    compat: str
    timeout_s: float | None = None

    def run_command(self, command: Callable[[], None]) -> None:
        """Runs a command; its failure is the tool's text, or one line on stderr."""
        from featurewatch.admin.errors import AdminError, OutcomeUnknownError, RequestError

        try:
            command()
        except TopicUsageError as error:
            sys.stdout.flush()
            print_note(str(error))
            raise Exit(ExitCode.FAILED) from None
        except TopicToolError as error:
            self.fail(str(error))
        except RequestError as error:
            self.fail(str(TopicToolError(str(error))))
        except OutcomeUnknownError as error:
            print_error(f"{error}; see what there is now: {self.describe_command}")
            raise Exit(ExitCode.UNKNOWN) from None
        except AdminError as error:
            if getattr(error, "code", None) is not None:
                self.fail(str(TopicToolError(str(error))))
            print_error(str(error))
            raise Exit(ExitCode.FAILED) from None

    def fail(self, text: str) -> NoReturn:
        """Prints the tool's text, with ``--json`` on stderr, and ends the command with 1."""
        if self.as_json:
            print_error(text)
        else:
            print_line(text)
        raise Exit(ExitCode.FAILED)

    @property
    def describe_command(self) -> str:
        """The command that shows what there is now."""
        return f"featurewatch topics describe --bootstrap-server {self.servers}"

    def read(
        self, work: "Callable[[TopicMetadataReader], Coroutine[Any, Any, _RESULT]]"
    ) -> _RESULT:
        """The result of calls of a client that only reads; raises `AdminError`."""
        from featurewatch.admin.topics.reader import TopicMetadataReader

        return self._run(TopicMetadataReader, work)

    def change(self, work: "Callable[[TopicAdmin], Coroutine[Any, Any, _RESULT]]") -> _RESULT:
        """The result of calls that may change the cluster; raises `AdminError`."""
        from featurewatch.admin.topics.client import TopicAdmin

        try:
            return self._run(TopicAdmin, work)
        except KeyboardInterrupt:
            print_error(f"broken off; see whether anything changed: {self.describe_command}")
            raise

    def _run(
        self, kind: type[_CLIENT], work: Callable[[_CLIENT], Coroutine[Any, Any, _RESULT]]
    ) -> _RESULT:
        from featurewatch.admin.connections import Bootstrap
        from featurewatch.admin.topics.session import blocking_pause
        from featurewatch.cli.client_session import light_runner

        runner = light_runner()
        addresses, config = self._addresses(), read_client_config(self.command_config)
        client = kind(
            Bootstrap(addresses, security=config.security),
            timeout_s=self.timeout_s or config.timeout_s or _TIMEOUT_S,
            connect_timeout_s=config.connect_timeout_s or _CONNECT_TIMEOUT_S,
            connect=runner.connect,
            pause=blocking_pause if runner.connect else None,
        )

        async def run() -> _RESULT:
            async with client:
                return await work(client)

        result: _RESULT = runner.run(run())
        return result

    def _addresses(self) -> tuple[Address, ...]:
        if not self.servers:
            raise TopicUsageError("--bootstrap-server must be specified")
        try:
            addresses = parse_addresses(self.servers)
        except ValueError as error:
            raise UsageError(f"--bootstrap-server: {error}") from None
        if not addresses:
            raise UsageError("no cluster is named: the address is empty")
        return addresses

    def check_server(self) -> None:
        """Raises `TopicUsageError` without an address, which the tool checks first."""
        self._addresses()

    def check_matched(self, names: list[str], topic: str | None, *, if_exists: bool) -> None:
        """Raises `TopicToolError` if an expression matches no topic."""
        if topic and not names and not if_exists:
            raise missing_topic(topic, self.compat)
