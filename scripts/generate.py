"""Writes all files, and parts of documents, that follow from declarations in the code.

Usage: ``python -m scripts.generate [--check]``. With ``--check`` nothing is written: each
stale file is a line on stderr, and the exit code is 3 if there is any.

What is read from Kafka's jars, which takes Java and minutes, is generated only where its inputs or
its files differ from those whose digest is in ``scripts/from_jars.json``.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from featurewatch.cli.config import reference_config
from featurewatch.kafka.releases import package_files
from featurewatch.stack.java.lock import LOCK_FILE, jar_lock
from scripts.generate_programs import program_sources
from scripts.generators import ROOT, Texts
from scripts.generators.asyncapi import asyncapi
from scripts.generators.chart import chart_files
from scripts.generators.connect import connect
from scripts.generators.document_blocks import documents
from scripts.generators.message_stubs import message_stubs
from scripts.generators.messages import messages
from scripts.generators.runbooks import runbooks
from scripts.generators.schemas import schemas
from scripts.generators.summaries import summaries
from scripts.generators.version import versions
from scripts.spark_release import texts as spark_texts


def reference() -> Texts:
    """Yields the reference configuration."""
    yield ROOT / "deploy" / "reference.yaml", reference_config.render()


GENERATORS: Final[tuple[Callable[[], Texts], ...]] = (
    summaries,
    message_stubs,
    schemas,
    asyncapi,
    connect,
    reference,
    chart_files,
    runbooks,
    messages,
    spark_texts,
    documents,
    versions,
)


@dataclass(frozen=True, slots=True)
class FromJars:
    """Files that a script makes from Kafka's jars, by paths below the repository's root."""

    script: str
    inputs: tuple[str, ...]
    files: tuple[str, ...]

    def digest(self) -> str:
        """Returns the SHA-256 of the inputs and the files."""
        digest = hashlib.sha256()
        for path in (_script_path(self.script), *_LOCKS, *self.inputs, *self.files):
            digest.update(f"{path}\0".encode())
            digest.update(_from_jars(ROOT / path))
        return digest.hexdigest()


def _from_jars(path: Path) -> bytes:
    """Returns the content of a file without what a person writes into that of a release, and of
    the lock Kafka's jars alone."""
    if path == LOCK_FILE:
        return json.dumps(_kafka_jars(json.loads(path.read_text()))).encode()
    if path.parent.name != "releases" or path.suffix != ".json":
        return path.read_bytes()
    content = json.loads(path.read_text())
    return json.dumps(
        {key: value for key, value in content.items() if key not in ("rules", "consequences")}
    ).encode()


def _kafka_jars(lock: Mapping[str, Any]) -> dict[str, Any]:
    """Returns path and SHA-256 of each jar in the class paths of a lock's releases."""
    jars = [*lock["jars"].items()]
    return {
        release: {name: [jars[number] for number in numbers] for name, numbers in of.items()}
        for release, of in lock["class_paths"].items()
    }


def _script_path(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


_LOCKS: Final = ("src/featurewatch/stack/java/jars.lock.json",)
_RELEASES: Final = tuple(
    f"src/featurewatch/kafka/releases/{file.release}.json" for file in package_files()
)
FROM_JARS: Final = (
    FromJars(
        "scripts.release",
        (
            "scripts/java/FeatureTable.java",
            "scripts/java_source.py",
            "src/featurewatch/kafka/releases/compose.py",
            "src/featurewatch/kafka/releases/schemas.py",
        ),
        _RELEASES,
    ),
    FromJars(
        "scripts.generate_programs",
        (
            "scripts/java_source.py",
            *(str(path.relative_to(ROOT)) for path in program_sources()),
        ),
        ("src/featurewatch/stack/learning/programs.jar",),
    ),
    FromJars(
        "scripts.generate_messages",
        (
            "scripts/java/ErrorTable.java",
            "scripts/java_source.py",
            "src/featurewatch/kafka/releases/schemas.py",
            *_RELEASES,
        ),
        ("src/featurewatch/kafka/messages/messages.json", "src/featurewatch/kafka/errors.json"),
    ),
)
DIGESTS: Final = ROOT / "scripts" / "from_jars.json"


def stale() -> Iterator[Path]:
    """Yields the files that differ from what would be generated."""
    recorded = json.loads(DIGESTS.read_text())
    for table in FROM_JARS:
        if recorded.get(table.script) != table.digest():
            yield from (ROOT / name for name in table.files)
    for generator in GENERATORS:
        for path, text in generator():
            if not path.exists() or path.read_text() != text:
                yield path


def _patches() -> list[str]:
    """Returns the patch of each release whose jars its file is read from."""
    return [file.content["kafka"] for file in package_files()]


def without_lock(releases: Iterable[str], locked: Container[str]) -> Iterator[str]:
    """Yields an error for each release of Kafka whose jars have no locked SHA-256."""
    for release in releases:
        if release not in locked:
            yield (
                f"jars.lock.json lacks the jars of Kafka {release}, which has a file in "
                f"kafka/releases: run python -m scripts.release {release}"
            )


def write() -> None:
    """Writes every file that is stale, and prints its path.

    Raises:
        SystemExit: A script failed, or a release has no locked jars; then nothing is written.
    """
    if errors := [*without_lock(_patches(), jar_lock().class_paths)]:
        raise SystemExit("\n".join(errors))
    digests = json.loads(DIGESTS.read_text())
    is_reread = False
    for table in FROM_JARS:
        if digests.get(table.script) == table.digest():
            continue
        print(f"{table.script}: reading Kafka's jars")
        if _run(table.script):
            raise SystemExit(f"{table.script} failed")
        digests[table.script] = table.digest()
        DIGESTS.write_text(json.dumps(digests, indent=2) + "\n")
        is_reread = True
    if is_reread:
        # This process has loaded the old tables: what follows from the new ones needs another one.
        if _run("scripts.generate"):
            raise SystemExit("scripts.generate failed")
        return
    for generator in GENERATORS:
        for path, text in generator():
            if not path.exists() or path.read_text() != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                print(path.relative_to(ROOT))


def _run(script: str) -> int:
    command = [sys.executable, "-m", script]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main(arguments: list[str]) -> int:
    """Writes the files, or names the stale ones with ``--check``."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m scripts.generate [--check]\n")
        return 2
    if not arguments:
        write()
        return 0
    found = sorted({str(path.relative_to(ROOT)) for path in stale()})
    sys.stderr.writelines(f"{name} is stale: run make generate\n" for name in found)
    return 3 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
