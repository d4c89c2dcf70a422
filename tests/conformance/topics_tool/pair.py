"""One invocation of ``kafka-topics`` and of ours, and the differences that do not count."""

import shlex
from collections.abc import Callable
from dataclasses import replace

from tests.conformance.kafka_tools import (
    COMPAT,
    CommandResult,
    KafkaTool,
    OurCommand,
)
from tests.waiting import eventually

WAIT_S = 60.0


class ToolPair:
    """Kafka's tool and ours on one cluster; each has topics with its own names.

    In a line ``%`` stands for the name that topics begin with.
    """

    def __init__(self, tool: KafkaTool, ours: OurCommand, servers: str, prefix: str) -> None:
        self._tool, self._ours, self._servers = tool, ours, servers
        self.tool_prefix, self.our_prefix = f"{prefix}-t", f"{prefix}-o"

    def by_tool(self, line: str, prefix: str | None = None) -> CommandResult:
        """What Kafka's tool prints."""
        prefix = prefix or self.tool_prefix
        action, *flags = shlex.split(line.replace("%", prefix))
        result = self._tool("--bootstrap-server", self._servers, f"--{action}", *flags)
        return _without_help(_renamed(result, prefix))

    def by_ours(self, line: str, prefix: str | None = None) -> CommandResult:
        """What our command prints."""
        prefix = prefix or self.our_prefix
        action, *flags = shlex.split(line.replace("%", prefix))
        compat = COMPAT[self._tool.release]
        result = self._ours(action, "--compat", compat, "--bootstrap-server", self._servers, *flags)
        return _renamed(result, prefix)

    def is_equal(self, line: str) -> CommandResult:
        """What both print, each with its own topics; asserts that it is the same."""
        expected, result = self.by_tool(line), self.by_ours(line)
        assert result == expected, line
        return expected

    def is_equal_on(self, prefix: str, line: str) -> CommandResult:
        """What both print of the same topics; a broker may be a moment behind another one."""
        pairs: list[tuple[CommandResult, CommandResult]] = []

        def agree() -> bool:
            pairs.append((self.by_tool(line, prefix), self.by_ours(line, prefix)))
            return pairs[-1][0] == pairs[-1][1]

        assert eventually(agree, WAIT_S), (line, *pairs[-1])
        return pairs[-1][0]

    def wait_until(self, holds: Callable[[set[str]], bool]) -> None:
        """Waits until every broker lists topics of which this holds."""
        for server in self._servers.split(","):

            def listed(server: str = server) -> bool:
                return holds(set(self._ours("list", "--bootstrap-server", server).out.split()))

            assert eventually(listed, WAIT_S), server


def _renamed(result: CommandResult, prefix: str) -> CommandResult:
    return replace(result, out=result.out.replace(prefix, "%"), err=result.err.replace(prefix, "%"))


def _without_help(result: CommandResult) -> CommandResult:
    """The tool's own help, or a stack trace, follows a wrong usage: the first line remains."""
    first, _, rest = result.err.partition("\n")
    return replace(result, err=f"{first}\n") if rest else result
