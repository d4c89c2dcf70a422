"""What a version of featurewatch leaves on disk and on the bus, frozen for the versions after it.

``python -m tests.formats`` writes it for the current version into ``tests/data/formats/VERSION``.
Do so once for each release, and never again for a released one.

- ``inputs.jsonl``: the messages of a simulated cluster on the input topics;
- ``rows.json``: the rows of the worker's changelog after them;
- ``outputs.jsonl``: the messages that the worker published;
- ``learned/9.1.json``: learned tables of a made-up release;
- ``expected.json``: what is known of the cluster after all of it (`view`);
- ``lake.tar.gz``: a lake into which a pipeline has read the inputs, with its checkpoints;
- ``lake-spark-4.2.tar.gz`` (0.1.0 only): another one, filled in three rounds by Spark 4.2, whose
  checkpoint still has the state of a cluster as a map.
"""

import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from featurewatch.monitor.rows import rows_of_step
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.codec.events import MalformedEventError, decode, encode
from featurewatch.streams.codec.outputs import encode_output, topic_of
from featurewatch.streams.events import Event
from featurewatch.streams.topics import INPUTS, Topic
from tests.learned_releases import made_up
from tests.paths import ROOT
from tests.simulation.records import CLUSTER
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.pipeline.filling import Messages

DIRECTORY: Final = ROOT / "tests" / "data" / "formats"
VERSION: Final = version("featurewatch")
LAKE: Final = "lake.tar.gz"
OLDER_LAKE: Final = "lake-spark-4.2.tar.gz"
LAKE_BUILT_AT: Final = Path("/tmp/featurewatch-formats/lake")
"""Where each frozen lake was written: the checkpoints of Spark name it."""
_SEED: Final = 7


def view(state: MonitorState) -> dict[str, Any]:
    """What is known of a cluster, as JSON that depends on no format of this project's."""
    image = state.image
    return {
        "levels": dict(sorted(image.features.levels.items())),
        "revision": image.features.revision,
        "authority": image.authority.value,
        "nodes": {
            str(key): {
                "ranges": {
                    name: list(bounds) for name, bounds in sorted(node.capabilities.ranges.items())
                },
                "fenced": node.fenced,
            }
            for key, node in sorted(image.nodes.nodes.items())
        },
        "firing": sorted(alert.id for alerts in state.firing.values() for alert in alerts),
    }


def input_of(event: Event) -> tuple[Topic, bytes]:
    """The input topic that an event belongs on, and its message's value."""
    for topic in INPUTS:
        with suppress(TypeError, MalformedEventError):
            value = encode(topic, event).value or b""
            decode(topic, value)
            return topic, value
    raise AssertionError(f"no input topic takes {event}")


def write(directory: Path) -> None:
    """Writes all files of the current version."""
    state, rows = MonitorState.of(CLUSTER), dict[str, bytes]()
    inputs, outputs = [], []
    for event in World(Random(_SEED)).history(steps=60):
        inputs.append(_line(*input_of(event)))
        result = step(state, event)
        outputs += [
            _line(topic_of(output), encode_output(output).value or b"") for output in result.outputs
        ]
        for key, value in rows_of_step(state, result) if result.state is not state else ():
            rows.pop(key, None)
            if value is not None:
                rows[key] = value
        state = result.state
    (directory / "learned").mkdir(parents=True)
    _write_lines(directory / "inputs.jsonl", inputs)
    _write_lines(directory / "outputs.jsonl", outputs)
    _write(directory / "rows.json", {key: json.loads(value) for key, value in rows.items()})
    _write(directory / "learned" / "9.1.json", made_up())
    _write(directory / "expected.json", view(state))


def bronze_of(directory: Path) -> "Messages":
    """The input messages of a version, as rows of bronze."""
    from tests.pipeline.filling import Messages

    topics = {topic.short_name: topic for topic in INPUTS}
    messages = Messages()
    for line in (directory / "inputs.jsonl").read_text().splitlines():
        item = json.loads(line)
        messages.add(topics[item["topic"]], CLUSTER.encode(), json.dumps(item["value"]).encode())
    return messages


def write_lake(directory: Path) -> None:
    """Writes the lake of the current version, which has the other files in ``directory``.

    Needs Spark's jars and a JDK.
    """
    from featurewatch.cli.runtime.spark_jars import spark_jars
    from featurewatch.pipeline.lake.lake import Lake
    from featurewatch.pipeline.spark.session import spark_session
    from featurewatch.stack.java.jars import Cache, default_cache
    from tests.pipeline.gold.parity import fill_tables

    shutil.rmtree(LAKE_BUILT_AT, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        jars = spark_jars(Cache(default_cache()))
        session = spark_session(Path(scratch), "local[2]", jars, brief=True)
        lake = Lake(session, str(LAKE_BUILT_AT))
        bronze_of(directory).into(lake)
        fill_tables(lake)
        lake.unlock()
        session.stop()
    with tarfile.open(directory / LAKE, "w:gz") as archive:
        archive.add(LAKE_BUILT_AT, "lake", filter=_anonymous)
    shutil.rmtree(LAKE_BUILT_AT)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The file without what is of this machine."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _line(topic: Topic, value: bytes) -> dict[str, Any]:
    return {"topic": topic.short_name, "value": json.loads(value) if value else None}


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write(DIRECTORY / VERSION)
    write_lake(DIRECTORY / VERSION)
