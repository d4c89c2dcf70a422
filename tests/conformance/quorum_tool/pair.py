"""One invocation of ``kafka-metadata-quorum`` and of ours, and what may differ."""

import re
from dataclasses import replace

from tests.conformance.kafka_tools import COMPAT, CommandResult, KafkaTool, OurCommand
from tests.waiting import eventually

WAIT_S = 60.0


class QuorumPair:
    """Kafka's tool and ours."""

    def __init__(self, tool: KafkaTool, ours: OurCommand) -> None:
        self._tool, self.ours = tool, ours
        self.both = (self.by_tool, self.by_ours)

    def by_tool(self, *arguments: str) -> CommandResult:
        """What Kafka's tool prints, without the stack trace after a failure of the cluster."""
        result = self._tool(*arguments)
        first, _, trace = result.err.partition("\norg.apache.kafka.")
        first, _, trace = (first, "", trace) if trace else first.partition("\njava.")
        return _settled(replace(result, err=f"{first}\n") if trace else result)

    def by_ours(self, *arguments: str) -> CommandResult:
        """What our command prints, without the lines that only it has."""
        compat = ("--compat", COMPAT[self._tool.release])
        return _settled(self.ours.as_the_tool(*compat, *arguments))

    def is_equal(self, *arguments: str) -> CommandResult:
        """What both print; asserts that it is the same, once no election runs."""
        pairs: list[tuple[CommandResult, CommandResult]] = []

        def agree() -> bool:
            pairs.append((self.by_tool(*arguments), self.by_ours(*arguments)))
            return pairs[-1][0] == pairs[-1][1]

        assert eventually(agree, WAIT_S), (arguments, *pairs[-1])
        return pairs[-1][0]


def _settled(result: CommandResult) -> CommandResult:
    """The result with the same digits for what grows between two requests, as long as it is.

    Offsets and times are replaced digit by digit, so that columns stay as wide as they were; only
    ages may have another number of digits, so that they and the spaces after them go.
    """
    out = re.sub(r"\d+ ms ago *\t", "AGE\t", result.out)
    out = re.sub(r"LastFetchTimestamp *\tLastCaughtUpTimestamp *\t", "TIMES\t", out)
    out = re.sub(r"(?<![\w-])\d{13}(?![\w-])", "9" * 13, out)
    out = re.sub(
        r"^(HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs|LeaderEpoch)(: +)-?\d+$",
        r"\1\2N",
        out,
        flags=re.MULTILINE,
    )
    # Columns 3 and 4 of a table: the end of the log and the lag.
    out = re.sub(
        r"^(\d+ *\t\S{22}\t)(\d+)( *\t)(\d+)( *\t)",
        lambda row: f"{row[1]}{'9' * len(row[2])}{row[3]}{'9' * len(row[4])}{row[5]}",
        out,
        flags=re.MULTILINE,
    )
    # Brokers name the request with its connection and the like, which is another for each.
    err = re.sub(r"Request\(.*\) needs", "Request(…) needs", result.err)
    return replace(result, out=out, err=err)
