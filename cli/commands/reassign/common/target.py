"""The cluster that a command changes, the options that name it, and the lines of a failure."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

from featurewatch.cli.client_session import run_client
from featurewatch.cli.command_line import Exit, Option
from featurewatch.cli.config.options import ADDRESSES
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line, print_note

if TYPE_CHECKING:
    from featurewatch.admin.reassignments.requests import AdminRequests

_CLIENT = TypeVar("_CLIENT", bound="AdminRequests")
_RESULT = TypeVar("_RESULT")
_TIMEOUT_S: Final = 60.0
_CONNECT_TIMEOUT_S: Final = 10.0
_TERMINATED: Final = 143
"""SIGTERM, as shells count it."""
_NO_RIGHT: Final = 31


class ToolRelease(StrEnum):
    """The release whose tools give the texts."""

    V3_9 = "3.9"
    V4_3 = "4.3"


Server = Annotated[
    str | None, Option("--bootstrap-server", metavar=ADDRESSES, help="Brokers of the cluster.")
]
Controller = Annotated[
    str | None,
    Option(
        "--bootstrap-controller",
        metavar=ADDRESSES,
        help="Controllers' listeners of its quorum, instead of brokers.",
    ),
]
Config = Annotated[
    Path | None,
    Option(
        "--command-config",
        metavar="FILE",
        help="Properties file for TLS and SASL, as Kafka takes it.",
    ),
]
Json = Annotated[bool, Option("--json", help="One JSON document on stdout.")]
Compat = Annotated[
    ToolRelease | None,
    Option("--compat", help="The release whose tool is followed.", default="4.3"),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Go on without a confirmation.")]
ReassignmentFile = Annotated[
    Path | None,
    Option(
        "--reassignment-json-file", metavar="FILE", help="The reassignment, as Kafka's tool has it."
    ),
]
PreserveThrottles = Annotated[
    bool, Option("--preserve-throttles", help="Leave throttles as they are.")
]


class Printer(NamedTuple):
    """Prints the lines of a tool on stdout, none where a document is printed instead."""

    as_json: bool

    def lines(self, lines: Iterable[str]) -> None:
        """Prints each line."""
        for line in lines:
            self.line(line)

    def line(self, text: str) -> None:
        """Prints one line."""
        if not self.as_json:
            print_line(text)

    def document(self, document: Callable[[], dict[str, Any]]) -> None:
        """Prints the document, if one is wanted."""
        if self.as_json:
            import json

            print_json_text(json.dumps(document(), indent=2, ensure_ascii=False))


class AdminTarget(NamedTuple):
    """Addresses of the cluster, the release whose tool is followed, and the form of the output.

    ``fails_on_stderr``: the tool prints its failures there.
    """

    servers: str
    controllers: str
    command_config: Path | None
    as_json: bool
    compat: ToolRelease
    fails_on_stderr: bool = False

    @property
    def printer(self) -> Printer:
        """Prints the results."""
        return Printer(self.as_json)

    @property
    def flag(self) -> str:
        """The option that names the cluster, for commands to go on with."""
        if self.servers:
            return f"--bootstrap-server {self.servers}"
        return f"--bootstrap-controller {self.controllers}"

    def client(self, kind: type[_CLIENT]) -> _CLIENT:
        """A client of the cluster; raises `UsageError` for wrong settings."""
        from featurewatch.admin.connections import Bootstrap
        from featurewatch.cli.config.client_config import read_client_config
        from featurewatch.streams.net.address import parse_addresses

        if bool(self.servers) == bool(self.controllers):
            raise UsageError("give one of --bootstrap-server and --bootstrap-controller")
        try:
            addresses = parse_addresses(self.servers or self.controllers)
        except ValueError as error:
            raise UsageError(f"{self.flag.split()[0]}: {error}") from None
        if not addresses:
            raise UsageError("no cluster is named: the address is empty")
        config = read_client_config(self.command_config)
        return kind(
            Bootstrap(addresses, controllers=not self.servers, security=config.security),
            timeout_s=config.timeout_s or _TIMEOUT_S,
            connect_timeout_s=config.connect_timeout_s or _CONNECT_TIMEOUT_S,
        )

    def run(self, work: Coroutine[Any, Any, _RESULT], *, see: str = "") -> _RESULT:
        """Runs what reads or changes the cluster; a failure is one line and an exit code.

        ``see`` is the command that shows what is the case when the outcome is unknown. SIGTERM
        cancels the work, as Ctrl-C does, so that it is left in order.
        """
        from featurewatch.admin.errors import AdminError, OutcomeUnknownError, RequestError
        from featurewatch.admin.reassignments.reader import RequestRefusedError
        from featurewatch.cli.commands.reassign.common.tool_error import (
            KafkaToolError,
            api_failure,
        )

        try:
            return run_client(_until_terminated(work))
        except asyncio.CancelledError:
            raise Exit(_TERMINATED) from None
        except RequestRefusedError as error:
            lacks = error.error.code == _NO_RIGHT
            advice = "this login lacks rights on the cluster: see docs/admin.md" if lacks else ""
            self.fail(api_failure(error.error, advice))
        except KafkaToolError as error:
            self.fail(error)
        except RequestError as error:
            raise UsageError(str(error)) from None
        except OutcomeUnknownError as error:
            print_error(f"{error}; see what is the case: {see} {self.flag}")
            raise Exit(ExitCode.UNKNOWN) from None
        except AdminError as error:
            print_error(str(error))
            raise Exit(ExitCode.FAILED) from None
        raise AssertionError  # fail does not return

    def fail(self, error: Exception) -> None:
        """Ends the command with 1, as the tool does."""
        text, advice = str(error), getattr(error, "advice", "")
        if self.as_json:
            if text or advice:
                self.printer.document(lambda: {"error": text.removeprefix("Error: ") or advice})
        elif text:
            for line in text.split("\n"):
                (print_note if self.fails_on_stderr else print_line)(line)
        if advice:
            print_error(advice)
        raise Exit(ExitCode.FAILED)


async def _until_terminated(work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await task
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def required_file(path: Path | None, option: str) -> Path:
    """The file of an option that the tool demands; ends the command without one, as the tool."""
    if path is not None:
        return path
    print_note(f'Missing required argument "[{option}]"')
    raise Exit(ExitCode.FAILED)


def required_text(value: str | None, option: str) -> str:
    """The value of an option that the tool demands, as `required_file`."""
    if value is not None:
        return value
    print_note(f'Missing required argument "[{option}]"')
    raise Exit(ExitCode.FAILED)
