"""An archive of classes that could not be created: when later starts try again."""

from pathlib import Path

import pytest

from featurewatch.stack.java.class_archive import archive_options, archive_path
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.archive_training import train_class_archive
from tests.stack.no_jars import NoJars

RELEASE = "4.3.0"
JAVA = """#!/bin/sh
case "$*" in
*-version*) echo 'openjdk version "17.0.1"' >&2 ;;
*StorageTool*)
    while [ "$1" != --config ]; do shift; done
    touch "$(dirname "$2")/data/meta.properties" ;;
*)
    echo started >> "STARTS"
    echo "REASON" >&2
    exit 1 ;;
esac
"""
"""A runtime that formats a node and does not run it."""


def starts_of_two(
    reason: str, directory: Path, monkeypatch: pytest.MonkeyPatch, cache: Cache
) -> int:
    """Returns how many nodes two trainings start, on a Java that ends with a reason."""
    java, starts = directory / "java" / "bin" / "java", directory / "starts"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.replace("STARTS", str(starts)).replace("REASON", reason))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(directory / "java"))
    for _ in range(2):
        train_class_archive(cache, RELEASE)
        assert archive_options(cache, RELEASE) == []
    return len(starts.read_text().splitlines())


def test_a_java_without_archives_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses the option, as every later one would."""
    reason = "Error: Could not create the Java Virtual Machine."
    assert starts_of_two(reason, tmp_path, monkeypatch, NoJars(tmp_path)) == 1


def test_another_failure_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that did not start says nothing about archives: the next start tries again."""
    reason = "java.net.BindException: Address already in use"
    assert starts_of_two(reason, tmp_path, monkeypatch, NoJars(tmp_path)) == 2


def test_an_empty_archive_is_created_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier versions left an empty file after any failure."""
    cache = NoJars(tmp_path)
    reason = "java.net.BindException: Address already in use"
    assert starts_of_two(reason, tmp_path / "first", monkeypatch, cache) == 2
    path = archive_path(cache, RELEASE)
    path.touch()
    train_class_archive(cache, RELEASE)
    assert len((tmp_path / "first" / "starts").read_text().splitlines()) == 3
