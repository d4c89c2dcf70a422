"""What a version of featurewatch leaves on disk and on the bus, frozen for the versions after it.

``python -m tests.formats`` writes it for the current version into ``tests/data/formats/VERSION``.
Do so once for each release, and never again for a released one.

- ``inputs.jsonl``: the messages of a simulated cluster on the input topics;
- ``rows.json``: the rows of the worker's changelog after them;
- ``outputs.jsonl``: the messages that the worker published;
- ``learned/9.1.json``: learned tables of a made-up release;
- ``expected.json``: what is known of the cluster after all of it (`view`).
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any, Final

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

DIRECTORY: Final = ROOT / "tests" / "data" / "formats"
VERSION: Final = version("featurewatch")
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


def _line(topic: Topic, value: bytes) -> dict[str, Any]:
    return {"topic": topic.short_name, "value": json.loads(value) if value else None}


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write(DIRECTORY / VERSION)
