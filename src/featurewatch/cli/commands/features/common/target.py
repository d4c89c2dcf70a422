"""The cluster whose features a command reads or changes."""

import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.cli.admin_target import AdminTarget
from featurewatch.cli.command_line import Exit
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.terminal import print_error, print_note

if TYPE_CHECKING:
    from featurewatch.admin.features.client import FeatureAdmin
    from featurewatch.admin.features.reader import FeatureReader

_RESULT = TypeVar("_RESULT")
_SHOWN_BY: Final = "featurewatch features describe"


@dataclass(frozen=True, slots=True)
class ClusterTarget(AdminTarget):
    """The cluster of a command of ``features``.

    ``dialect`` is how it speaks; ``is_strict``: the release was named, so that nothing is taken
    that its tool refuses.
    """

    see: ClassVar[str] = "what is finalized now"

    dialect: FeatureDialect = FeatureDialect.RELEASED
    is_strict: bool = False

    def admin(self) -> "FeatureAdmin":
        """The client that changes features; raises `UsageError` for wrong settings."""
        # Here, so that commands without a cluster need no client.
        from featurewatch.admin.features.client import FeatureAdmin

        return self.client(FeatureAdmin, dialect=self.dialect)

    def reader(self) -> "FeatureReader":
        """The client that reads features; raises as `admin` does."""
        from featurewatch.admin.features.reader import FeatureReader

        return self.client(FeatureReader, dialect=self.dialect)

    def needs_released(self, command: str, instead: str) -> None:
        """Raises `UsageError` for a command that the drafts do not have."""
        if self.dialect is not FeatureDialect.RELEASED:
            raise UsageError(f"the drafts of KIP-584 have no {command}: use {instead}")

    @property
    def describe_command(self) -> str:
        """The command that shows what is finalized now."""
        return f"{_SHOWN_BY} {self.flag}"

    def run(self, work: Coroutine[Any, Any, _RESULT], *, changes: bool = False) -> _RESULT:
        """Runs on an event loop what reads the cluster, or ``changes`` it.

        A failure is one line on stderr and an exit code.
        """
        with self.reported(_SHOWN_BY, changes=changes):
            return self.run_loop(work)

    def read_blocking(
        self, read: Callable[["FeatureReader"], Coroutine[Any, Any, _RESULT]]
    ) -> _RESULT:
        """Runs what reads one node, without an event loop, whose import takes longer."""
        from featurewatch.admin.features.reader import FeatureReader

        with self.reported(_SHOWN_BY, changes=False):
            return self.run_blocking(FeatureReader, read, dialect=self.dialect)


def fail(text: str, code: ExitCode, close: str = "") -> NoReturn:
    """Ends the command; the text is the tool's own and printed as it is.

    A line of ours follows with ``close``, a name that was probably meant.
    """
    sys.stdout.flush()
    print_note(text)
    if close:
        print_error(f"did you mean {close}?")
    raise Exit(code)
