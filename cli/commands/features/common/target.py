"""The cluster that a command asks, and what it says when that fails."""

import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from featurewatch.admin.fast_describe import fast_describe
from featurewatch.admin.metadata import FeatureDialect
from featurewatch.cli.config.client_config import read_client_config
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.streams.net.address import Address, parse_addresses

if TYPE_CHECKING:
    from featurewatch.admin.features import FeatureAdmin
    from featurewatch.admin.metadata import FeatureMetadata

_RESULT = TypeVar("_RESULT")
_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 10.0
_GLANCE_S = 3.0


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """Where the cluster is reached, and how it and the person are spoken to.

    ``compat`` is the release whose ``kafka-features`` is followed.
    """

    servers: str
    controllers: str
    command_config: Path | None
    as_json: bool
    compat: str
    dialect: FeatureDialect
    timeout_s: float | None = None

    def admin(self) -> "FeatureAdmin":
        """The way to the cluster; raises `UsageError` for what can be seen to be wrong."""
        # Here, so that what asks no cluster waits for no codec.
        from featurewatch.admin.features import Bootstrap, FeatureAdmin

        addresses, config = self._addresses(), read_client_config(self.command_config)
        for warning in config.warnings:
            print_error(warning)
        return FeatureAdmin(
            Bootstrap(addresses, controllers=not self.servers, security=config.security),
            dialect=self.dialect,
            timeout_s=self.timeout_s or config.timeout_s or _TIMEOUT_S,
            connect_timeout_s=config.connect_timeout_s or _CONNECT_TIMEOUT_S,
        )

    def glance(self) -> "FeatureMetadata | None":
        """What the first broker says, where it takes no login and no choice; None: ask `admin`."""
        if not self.servers or self.dialect is not FeatureDialect.RELEASED:
            return None
        first = self._addresses()[0]
        config = read_client_config(self.command_config)
        if config.security.mechanism is not None or config.warnings:
            return None
        return fast_describe(
            first, config.security.tls, min(self.timeout_s or _GLANCE_S, _GLANCE_S)
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
        """The command that tells what is finalized now."""
        flag, address = (
            ("--bootstrap-server", self.servers)
            if self.servers
            else ("--bootstrap-controller", self.controllers)
        )
        return f"featurewatch features describe {flag} {address}"

    def run(self, work: Coroutine[Any, Any, _RESULT], *, changes: bool = False) -> _RESULT:
        """Runs what asks the cluster, or ``changes`` it.

        A failure is one line on stderr and an exit code.
        """
        import asyncio

        from featurewatch.admin.errors import AdminError, OutcomeUnknownError, RequestError

        try:
            return asyncio.run(work)
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
            raise typer.Exit(ExitCode.UNKNOWN) from None
        except AdminError as error:
            print_error(str(error))
            raise typer.Exit(ExitCode.FAILED) from None


def print_error(text: str) -> None:
    """One line for the person, on stderr."""
    sys.stderr.write(f"featurewatch: {text}\n")


def fail(text: str, code: ExitCode) -> NoReturn:
    """Ends the command; the text is the tool's own and stands as it is."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
    raise typer.Exit(code)
