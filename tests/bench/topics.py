"""``topics_…_vs_kafka_topics`` and ``create_1000_topics_vs_kafka_admin``, on a 4.3.0 node.

describe and list are whole processes of both, in turns, on 1,000 topics, and print the same.
Kafka's tool has its fastest form, as in `tests.bench.features`. Creation is by both clients,
connected and warm, in one request; what each created is deleted before the next turn.
"""

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.topics.client import TopicAdmin
from featurewatch.admin.topics.values import TopicSpec, check_changes
from featurewatch.kafka.address import parse_addresses
from featurewatch.stack.java.jars import Cache, Jars, default_cache, java_command, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from scripts.java_source import compile_java
from tests.bench.turns import FEATUREWATCH, line, medians, timed

RELEASE: Final = "4.3.0"
COUNT: Final = 1_000
TURNS: Final = 5
_RESULT = TypeVar("_RESULT")
SOURCE: Final = Path(__file__).with_name("java") / "CreateTopics.java"


def run() -> Iterator[dict[str, Any]]:
    """The median of each, and how many times faster ours is."""
    Cache(default_cache()).class_path(RELEASE, Jars.TOOLS)
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        spec = combined([RELEASE])
        with Cluster(spec, directory / "cluster", temporary=True) as cluster:
            yield _created(cluster.bootstrap_servers, directory / "java")
            _create(cluster.bootstrap_servers, "kept")
            _work(cluster.bootstrap_servers, _listed)
            yield _shown("describe", cluster.bootstrap_servers)
            yield _shown("list", cluster.bootstrap_servers)


def _shown(action: str, servers: str) -> dict[str, Any]:
    where = ("--bootstrap-server", servers)
    ours = (*FEATUREWATCH, "topics", action, *where)
    main = "org.apache.kafka.tools.TopicCommand"
    theirs = tool_command(RELEASE, main, *where, f"--{action}")
    theirs.insert(1, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
    printed, expected = timed(ours)[1], timed(theirs)[1]
    if printed != expected or printed.count("kept-") < COUNT:
        raise RuntimeError(f"they print different things, {len(printed)} and {len(expected)} signs")
    took = medians({"ours": ours, "theirs": theirs})
    measure = f"topics_{action}_vs_kafka_topics"
    return line(measure, took["ours"], took["theirs"], took["theirs"] / took["ours"])


def _created(servers: str, directory: Path) -> dict[str, Any]:
    ours: list[float] = []
    theirs: list[float] = []
    with _kafka_admin(servers, directory) as (requests, answers):
        for number in range(TURNS + 1):
            requests.write(f"theirs-{number} {COUNT}\n")
            requests.flush()
            their_s = int(answers.readline()) / 1e9
            _delete_all(servers)
            our_s = _create(servers, f"ours-{number}")
            _delete_all(servers)
            if number:
                ours.append(our_s)
                theirs.append(their_s)
    our_median, their_median = statistics.median(ours), statistics.median(theirs)
    measure = f"create_{COUNT}_topics_vs_kafka_admin"
    return line(measure, our_median, their_median, their_median / our_median, turns=TURNS)


@contextmanager
def _kafka_admin(servers: str, directory: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    """The pipes to a JVM that creates topics."""
    cache = Cache(default_cache())
    jars = cache.class_path(RELEASE, Jars.TOOLS)
    compile_java([SOURCE], directory, cache, jars)
    options = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    command = java_command(
        [directory, *jars], "CreateTopics", servers, heap_mb=256, options=options
    )
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        if process.stdin is None or process.stdout is None or process.stdout.readline() == "":
            raise RuntimeError("Kafka's client did not start")
        try:
            yield process.stdin, process.stdout
        finally:
            process.kill()


def _create(servers: str, prefix: str) -> float:
    """Creates topics by our client; the seconds without the connection."""

    async def create(admin: TopicAdmin) -> float:
        await admin.cluster()
        specs = [TopicSpec(f"{prefix}-{number}", 1, 1) for number in range(COUNT)]
        started = time.perf_counter()
        check_changes(await admin.create(specs))
        return time.perf_counter() - started

    return _work(servers, create)


def _work(servers: str, work: Callable[[TopicAdmin], Coroutine[Any, Any, _RESULT]]) -> _RESULT:
    """What a client's calls return."""

    async def run() -> _RESULT:
        async with TopicAdmin(Bootstrap(parse_addresses(servers))) as admin:
            return await work(admin)

    return asyncio.run(run())


async def _listed(admin: TopicAdmin) -> tuple[str, ...]:
    """All topics: the broker may be a moment behind the controller."""
    names: tuple[str, ...] = ()
    while len(names) < COUNT:
        names = await admin.list_topics()
    return names


def _delete_all(servers: str) -> None:
    """Deletes all topics, and waits until the broker lists none."""

    async def delete(admin: TopicAdmin) -> None:
        check_changes(await admin.delete(await _listed(admin)))
        while await admin.list_topics():
            time.sleep(0.1)
        time.sleep(2)  # the logs go, too

    _work(servers, delete)
