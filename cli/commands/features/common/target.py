"""The cluster that a command talks to, and the line that is printed when that fails."""

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from featurewatch.admin.metadata import FeatureDialect
from featurewatch.cli.command_line import Exit
from featurewatch.cli.config.client_config import read_client_config
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_error, print_note
from featurewatch.streams.net.address import Address, parse_addresses

if TYPE_CHECKING:
    from featurewatch.admin.features import FeatureAdmin
    from featurewatch.admin.reader import FeatureReader
    from featurewatch.streams.net.transport import Connect

_CLIENT = TypeVar("_CLIENT", bound="FeatureReader")
_RESULT = TypeVar("_RESULT")
_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 10.0


class ClusterTarget(NamedTuple):
    """Addresses of the cluster, its dialect, and the form of what is printed.

    ``compat`` is the release whose ``kafka-features`` is followed; ``is_strict``: it was named, so
    that nothing is taken that its tool refuses.
    """

    servers: str
    controllers: str
    command_config: Path | None
    as_json: bool
    compat: str
    is_strict: bool
    dialect: FeatureDialect
    timeout_s: float | None = None

    def admin(self) -> "FeatureAdmin":
        """The client that changes features; raises `UsageError` for wrong settings."""
        # Here, so that commands without a cluster need no client.
        from featurewatch.admin.features import FeatureAdmin

        return self._client(FeatureAdmin)

    def reader(self, connect: "Connect | None" = None) -> "FeatureReader":
        """The client that reads features; ``connect`` as it takes it. Raises as `admin` does."""
        from featurewatch.admin.reader import FeatureReader

        return self._client(FeatureReader, connect)

    def _client(self, kind: type[_CLIENT], connect: "Connect | None" = None) -> _CLIENT:
        from featurewatch.admin.connections import Bootstrap

        addresses, config = self._addresses(), read_client_config(self.command_config)
        return kind(
            Bootstrap(addresses, controllers=not self.servers, security=config.security),
            dialect=self.dialect,
            timeout_s=self.timeout_s or config.timeout_s or _TIMEOUT_S,
            connect_timeout_s=config.connect_timeout_s or _CONNECT_TIMEOUT_S,
            connect=connect,
        )

    def _addresses(self) -> tuple[Address, ...]:
        if not (self.servers or self.controllers):
            raise UsageError(
                "no cluster is named: give --bootstrap-server or --bootstrap-controller"
            )
        try:
            addresses = parse_addresses(self.servers or self.controllers)
        except ValueError as error:
            flag = "--bootstrap-server" if self.servers else "--bootstrap-controller"
            raise UsageError(f"{flag}: {error}") from None
        if not addresses:
            raise UsageError("no cluster is named: the address is empty")
        return addresses

    def needs_released(self, command: str, instead: str) -> None:
        """Raises `UsageError` for a command that the drafts do not have."""
        if self.dialect is not FeatureDialect.RELEASED:
            raise UsageError(f"the drafts of KIP-584 have no {command}: use {instead}")

    @property
    def describe_command(self) -> str:
        """The command that shows what is finalized now."""
        flag, address = (
            ("--bootstrap-server", self.servers)
            if self.servers
            else ("--bootstrap-controller", self.controllers)
        )
        return f"featurewatch features describe {flag} {address}"

    def run(self, work: Coroutine[Any, Any, _RESULT], *, changes: bool = False) -> _RESULT:
        """Runs on an event loop what reads the cluster, or ``changes`` it.

        A failure is one line on stderr and an exit code.
        """
        from featurewatch.cli.client_session import run_client

        return self._run(lambda: run_client(work), changes=changes)

    def run_blocking(
        self, read: Callable[["FeatureReader"], Coroutine[Any, Any, _RESULT]]
    ) -> _RESULT:
        """Runs what reads one node, without an event loop, whose import takes longer."""
        from featurewatch.cli.client_session import light_runner

        runner = light_runner()
        reader = self.reader(runner.connect)
        result: _RESULT = self._run(lambda: runner.run(read(reader)))
        return result

    def _run(self, work: Callable[[], _RESULT], *, changes: bool = False) -> _RESULT:
        from featurewatch.admin.errors import AdminError, OutcomeUnknownError, RequestError

        try:
            return work()
        except KeyboardInterrupt:
            if changes:
                print_error(
                    f"broken off; see whether anything was changed: {self.describe_command}"
                )
            raise
        except RequestError as error:
            raise UsageError(str(error)) from None
        except OutcomeUnknownError as error:
            print_error(f"{error}; see what is finalized now: {self.describe_command}")
            raise Exit(ExitCode.UNKNOWN) from None
        except AdminError as error:
            print_error(str(error))
            raise Exit(ExitCode.FAILED) from None


def fail(text: str, code: ExitCode, close: str = "") -> NoReturn:
    """Ends the command; the text is the tool's own and printed as it is.

    A line of ours follows with ``close``, a name that was probably meant.
    """
    sys.stdout.flush()
    print_note(text)
    if close:
        print_error(f"did you mean {close}?")
    raise Exit(code)
