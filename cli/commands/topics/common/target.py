"""The cluster whose topics a command manages, and how its failures are printed."""

import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from featurewatch.cli.admin_target import AdminTarget
from featurewatch.cli.command_line import Exit
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.kafka_topics import TopicToolError, TopicUsageError, missing_topic
from featurewatch.cli.output.terminal import print_error, print_line, print_note

if TYPE_CHECKING:
    from featurewatch.admin.topics.client import TopicAdmin
    from featurewatch.admin.topics.reader import TopicMetadataReader

_RESULT = TypeVar("_RESULT")
_SHOWN_BY: Final = "featurewatch topics describe"


class TopicTarget(AdminTarget):
    """The cluster of a command of ``topics`` or ``cluster``."""

    see = "what there is now"

    def run_command(self, command: Callable[[], None]) -> None:
        """Runs a command; its failure is the tool's text, or one line on stderr."""
        from featurewatch.admin.errors import KafkaApiError, RequestError

        with self.reported(_SHOWN_BY, changes=False):
            try:
                command()
            except TopicUsageError as error:
                sys.stdout.flush()
                print_note(str(error))
                raise Exit(ExitCode.FAILED) from None
            except TopicToolError as error:
                self.fail(str(error))
            except (RequestError, KafkaApiError) as error:
                self.fail(str(TopicToolError(str(error))))

    def fail(self, text: str) -> NoReturn:
        """Prints the tool's text, with ``--json`` on stderr, and ends the command with 1."""
        if self.as_json:
            print_error(text)
        else:
            print_line(text)
        raise Exit(ExitCode.FAILED)

    def read(
        self, work: "Callable[[TopicMetadataReader], Coroutine[Any, Any, _RESULT]]"
    ) -> _RESULT:
        """The result of calls of a client that only reads; raises `AdminError`."""
        from featurewatch.admin.topics.reader import TopicMetadataReader

        return self.run_blocking(TopicMetadataReader, work)

    def change(self, work: "Callable[[TopicAdmin], Coroutine[Any, Any, _RESULT]]") -> _RESULT:
        """The result of calls that may change the cluster; raises `AdminError`."""
        from featurewatch.admin.topics.client import TopicAdmin

        try:
            return self.run_blocking(TopicAdmin, work)
        except KeyboardInterrupt:
            self.print_broken_off(_SHOWN_BY)
            raise

    def check_server(self) -> None:
        """Raises `TopicUsageError` without an address, which the tool checks first."""
        if not self.servers:
            raise TopicUsageError("--bootstrap-server must be specified")
        self.addresses()

    def check_matched(self, names: list[str], topic: str | None, *, if_exists: bool) -> None:
        """Raises `TopicToolError` if an expression matches no topic."""
        if topic and not names and not if_exists:
            raise missing_topic(topic, self.compat)
