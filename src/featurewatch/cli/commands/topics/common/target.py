"""The cluster whose topics a command manages, and how its failures are printed."""

import re
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from featurewatch.cli.admin_target import AdminTarget, lacking
from featurewatch.cli.command_line import Exit
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.kafka_tools.topics import TopicToolError, TopicUsageError, missing_topic
from featurewatch.cli.output.terminal import print_error, print_line, print_note

if TYPE_CHECKING:
    from featurewatch.admin.topics.client import TopicAdmin
    from featurewatch.admin.topics.reader import TopicMetadataReader

_RESULT = TypeVar("_RESULT")
_SHOWN_BY: Final = "featurewatch topics describe"
_NAME: Final = re.compile(r"[\w.-]{1,249}", re.ASCII)
"""A topic's name, which as an expression may stand for others, too."""


class TopicTarget(AdminTarget):
    """The cluster of a command of ``topics`` or ``cluster``."""

    see: ClassVar[str] = "what there is now"

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
                self.fail(error)
            except KafkaApiError as error:
                self.fail(TopicToolError(str(error), error.right))
            except RequestError as error:
                self.fail(TopicToolError(str(error)))

    def fail(self, error: TopicToolError) -> NoReturn:
        """Prints the tool's text, with ``--json`` on stderr, and ends the command with 1.

        A line of ours follows with the right that is missing.
        """
        if self.as_json:
            print_error(str(error))
        else:
            print_line(str(error))
        if error.right:
            print_error(lacking(error.right))
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

    async def check_matched(
        self,
        reader: "TopicMetadataReader",
        names: list[str],
        topic: str | None,
        *,
        if_exists: bool,
    ) -> None:
        """Raises `TopicToolError` if an expression matches no topic.

        Brokers leave out a topic that the login may not see; requested by its name, it is refused.
        """
        if not topic or names or if_exists:
            return
        found = await reader.topics([topic]) if _NAME.fullmatch(topic) else None
        error = found.errors.get(topic) if found else None
        raise missing_topic(topic, self.compat, error.right if error else "")
