"""Generates ``stack/learning/programs.jar``: our Java programs, compiled.

``featurewatch releases learn`` runs them against the jars of an installed Kafka, where there may be
no Java compiler. They are compiled for Java 17 against the newest release of the lock: the table of
levels (``scripts/java/FeatureTable.java``), which calls Kafka by reflection only, and the
controller that is asked (``scripts/java/controller``).

The archive is reproducible: its files are sorted, not compressed, and have no times.

Usage: ``python -m scripts.generate_programs [--check]``. With ``--check`` nothing is written; the
exit code is 3 if the archive differs.
"""

import io
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from featurewatch.kafka.releases import package_files
from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.learning.programs import PROGRAMS
from scripts.java_source import compile_java

SOURCES: Final = Path(__file__).resolve().parent / "java"
_NO_TIME: Final = (1980, 1, 1, 0, 0, 0)


def program_sources() -> list[Path]:
    """The Java files that the archive is compiled from."""
    return [SOURCES / "FeatureTable.java", *sorted((SOURCES / "controller").rglob("*.java"))]


def archive(cache: Cache) -> bytes:
    """The archive's content."""
    with tempfile.TemporaryDirectory() as name:
        classes = Path(name)
        compile_java(
            program_sources(),
            classes,
            cache,
            cache.class_path(package_files()[-1].content["kafka"]),
        )
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as programs:
            for file in sorted(classes.rglob("*.class")):
                entry = zipfile.ZipInfo(file.relative_to(classes).as_posix(), _NO_TIME)
                entry.external_attr = 0o644 << 16
                programs.writestr(entry, file.read_bytes())
        return content.getvalue()


def main(arguments: list[str]) -> int:
    """Writes the archive, or compares it with ``--check``; returns 0, or 3 if it differs."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m scripts.generate_programs [--check]\n")
        return 2
    content = archive(Cache(default_cache()))
    if arguments:
        return 0 if PROGRAMS.exists() and PROGRAMS.read_bytes() == content else 3
    PROGRAMS.write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
