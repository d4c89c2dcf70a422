"""The cluster that a command reads or changes: opens its client, and turns failures into lines.

Every group of commands has a target of its own that adds the texts of its tool. Which address,
which login, which exit code, and which line for what is unknown, are the same for all.
"""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from featurewatch.cli.command_line import Exit
from featurewatch.cli.config.client_config import read_client_config
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_error
from featurewatch.kafka.address import Address, parse_addresses

if TYPE_CHECKING:
    from featurewatch.admin.session import AdminSession

_CLIENT = TypeVar("_CLIENT", bound="AdminSession")
_RESULT = TypeVar("_RESULT")
_TIMEOUT_S: Final = 60.0
_CONNECT_TIMEOUT_S: Final = 10.0


def lacking(right: str) -> str:
    """The line about a right that is missing."""
    return f"this login lacks {right}: docs/admin.md lists the rights that commands need"


@dataclass(frozen=True, slots=True)
class AdminTarget:
    """Addresses of the cluster, and the form of what is printed.

    ``compat`` is the release whose tool is followed, ``timeout_s`` how long the cluster may take
    (None: as the properties file has it, or a minute).
    """

    see: ClassVar[str] = "what is the case"
    """What a person has to look at when the outcome of a change is unknown."""

    servers: str
    controllers: str
    command_config: Path | None
    as_json: bool
    compat: str
    timeout_s: float | None = None

    @property
    def flag(self) -> str:
        """The option that names the cluster, for commands to go on with."""
        if self.servers:
            return f"--bootstrap-server {self.servers}"
        return f"--bootstrap-controller {self.controllers}"

    def addresses(self) -> tuple[Address, ...]:
        """The bootstrap addresses; raises `UsageError`."""
        if not (self.servers or self.controllers):
            raise UsageError(
                "no cluster is named: give --bootstrap-server or --bootstrap-controller"
            )
        if self.servers and self.controllers:
            raise UsageError("give --bootstrap-server or --bootstrap-controller, not both")
        try:
            addresses = parse_addresses(self.servers or self.controllers)
        except ValueError as error:
            raise UsageError(f"{self.flag.split()[0]}: {error}") from None
        if not addresses:
            raise UsageError("no cluster is named: the address is empty")
        return addresses

    def client(self, kind: type[_CLIENT], **options: Any) -> _CLIENT:
        """A client of the cluster with these options of its own.

        Raises:
            UsageError: An address or the properties file is wrong.
        """
        from featurewatch.admin.connections import Bootstrap

        addresses, config = self.addresses(), read_client_config(self.command_config)
        return kind(
            Bootstrap(addresses, controllers=not self.servers, security=config.security),
            timeout_s=self.timeout_s or config.timeout_s or _TIMEOUT_S,
            connect_timeout_s=config.connect_timeout_s or _CONNECT_TIMEOUT_S,
            **options,
        )

    def run_blocking(
        self,
        kind: type[_CLIENT],
        work: Callable[[_CLIENT], Coroutine[Any, Any, _RESULT]],
        **options: Any,
    ) -> _RESULT:
        """The result of ``work``, which awaits nothing but the calls of a client of its own.

        Without an event loop, if there is none yet: its import takes longer than most calls.
        """
        from featurewatch.admin.session import blocking_pause
        from featurewatch.cli.client_session import light_runner

        runner = light_runner()
        pause = blocking_pause if runner.connect else None
        client = self.client(kind, connect=runner.connect, pause=pause, **options)

        async def run() -> _RESULT:
            async with client:
                return await work(client)

        result: _RESULT = runner.run(run())
        return result

    def run_loop(self, work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
        """The result of ``work`` on an event loop."""
        from featurewatch.cli.client_session import run_client

        return run_client(work)

    @contextmanager
    def reported(self, shown_by: str, *, changes: bool = True) -> Iterator[None]:
        """Ends the command at a client's failure, with one line on stderr and its exit code.

        ``shown_by`` is the command that shows what is the case when a change was sent and its
        outcome is unknown; Ctrl-C names it, too, while something ``changes``.

        Raises:
            UsageError: The request is impossible.
            Exit: Any other failure of a client.
        """
        from featurewatch.admin.errors import AdminError, OutcomeUnknownError, RequestError

        try:
            yield
        except KeyboardInterrupt:
            if changes:
                self.print_broken_off(shown_by)
            raise
        except RequestError as error:
            raise UsageError(str(error)) from None
        except OutcomeUnknownError as error:
            print_error(f"{error}; see {self.see}: {shown_by} {self.flag}")
            raise Exit(ExitCode.UNKNOWN) from None
        except AdminError as error:
            print_error(str(error))
            raise Exit(ExitCode.FAILED) from None

    def print_broken_off(self, shown_by: str) -> None:
        """Prints that Ctrl-C ended what may have changed something."""
        print_error(f"broken off; see whether anything was changed: {shown_by} {self.flag}")
