"""Clocks are passed in: only the modules listed here read one."""

import ast
import re
from collections.abc import Iterator, Set

from tests.paths import PACKAGE

TIME = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}
CLOCKS = (
    {("time", name) for name in TIME}
    | {("datetime", name) for name in ("now", "today", "utcnow")}
    | {("date", "today")}
)
READERS = {"wall_clock_ms", "monotonic_ms", "monotonic_wall_clock"}
"""Functions of the product that read a clock."""
NAMED = re.compile(rf"\b({'|'.join(sorted(READERS | {'time', 'date', 'datetime'}))})\b")
"""What the source of a module that reads a clock contains; the others need not be parsed."""

EXCEPTIONS = {
    "client/asynchronous.py": "how long a caller waits for a level",
    "client/gate.py": "where a gate begins to read, and how long a caller waits for it",
    "client/subscription.py": "the pauses between attempts and between looks at a topic's id",
    "common/service_manager.py": "the time of a reload, which systemd wants with it",
    "kafka/client_config/kerberos/gss.py": "the end of a ticket, as the Kerberos libraries see it",
    "stack/process/server.py": "how long a server has run, for its error",
    "stack/process/polling.py": "the deadline of all that `stack` waits for",
    "reference/kraft/command.py": "the time in the snapshot of a format",
    "reference/kraft/light_brokers/host.py": "the clock that drives light brokers",
    "reference/kraft/node.py": "the clock that drives a voter",
    "reference/zookeeper/cluster.py": "the time in the znodes of light brokers",
    "reference/zookeeper/sessions/client.py": "defines the clock of the reference system",
    "reference/zookeeper/sessions/session.py": "the clock that its callers may replace",
    "streams/bus/feed.py": "the pause before a reader starts again",
    "streams/bus/reader.py": "the deadlines of calls into librdkafka",
    "streams/source.py": "defines the clocks of the sources",
}
"""Modules that read a clock themselves, each with the reason. Those of `cli` pass clocks in."""


def _clock_reads(node: ast.AST, readers: Set[str] = frozenset(READERS)) -> Iterator[int]:
    """The lines that read a clock, or pass one on; a default of a parameter may be replaced.

    ``readers`` are the functions that read one; a parameter of that name is a clock passed in.
    """
    match node:
        case ast.arguments():
            return
        case ast.Attribute(value=ast.Name(id=module), attr=name) if (module, name) in CLOCKS:
            yield node.lineno
        case ast.Call(func=ast.Name(id=name)) if name in readers:
            yield node.lineno
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            readers -= {parameter.arg for parameter in parameters}
    for child in ast.iter_child_nodes(node):
        yield from _clock_reads(child, readers)


def _imported_clocks(tree: ast.AST) -> set[str]:
    """The functions of `time` that a module imports by name, which would not be recognized."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
    } & TIME


def test_only_the_listed_modules_read_a_clock() -> None:
    """Every other module below the commands gets its clock as an argument."""
    readers = set()
    for file in sorted(PACKAGE.rglob("*.py")):
        source = file.read_text()
        if NAMED.search(source) is None:
            continue
        tree = ast.parse(source)
        assert _imported_clocks(tree) == set(), file
        name = str(file.relative_to(PACKAGE))
        if not name.startswith("cli/") and any(_clock_reads(tree)):
            readers.add(name)
    assert readers == EXCEPTIONS.keys()
