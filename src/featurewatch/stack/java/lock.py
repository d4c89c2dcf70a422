"""The lock: the SHA-256 of every jar, and the class path of every release of Kafka.

``python -m scripts.lock_jars`` writes it. Nothing is resolved at run time, so no file of Maven
Central other than these jars is read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

LOCK_FILE: Final = Path(__file__).with_name("jars.lock.json")
SPARK: Final = "spark"
"""The program whose jars are Spark's connectors to Delta and Kafka."""


@dataclass(frozen=True, slots=True)
class JarLock:
    """``sha256`` by path in a Maven repository; ``class_paths`` by release, then by their name.

    ``programs`` are class paths of what is not Kafka, by name.
    """

    sha256: Mapping[str, str]
    class_paths: Mapping[str, Mapping[str, Sequence[str]]]
    programs: Mapping[str, Sequence[str]] = field(default_factory=dict)


@cache
def jar_lock() -> JarLock:
    """The lock of this version of featurewatch."""
    content = json.loads(LOCK_FILE.read_text())
    paths = list(content["jars"])
    return JarLock(
        content["jars"],
        {
            release: {name: [paths[number] for number in numbers] for name, numbers in of.items()}
            for release, of in content["class_paths"].items()
        },
        {name: [paths[number] for number in of] for name, of in content["programs"].items()},
    )


def path_of(coordinate: str) -> str:
    """The path in a Maven repository of the jar ``group:artifact:version``."""
    group, artifact, version = coordinate.split(":")
    return f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"
