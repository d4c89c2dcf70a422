"""The Java that Spark is started on, and the errors without one."""

from pathlib import Path

import pytest

from featurewatch.pipeline.errors import SparkMissingError
from featurewatch.pipeline.spark.java import java_home


def fake_java(home: Path, modules: str) -> Path:
    """Creates a ``java`` that lists the given modules."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\nprintf '{modules}'\n")
    java.chmod(0o755)
    return java


def test_a_full_jdk_is_taken(tmp_path: Path) -> None:
    """JAVA_HOME takes precedence over PATH."""
    fake_java(tmp_path / "jdk", "java.base@21.0.1\\njdk.incubator.vector@21.0.1\\n")
    fake_java(tmp_path / "other", "java.base@17\\njdk.incubator.vector@17\\n")
    environment = {"JAVA_HOME": str(tmp_path / "jdk"), "PATH": str(tmp_path / "other" / "bin")}
    assert java_home(environment) == tmp_path / "jdk"
    assert java_home({"PATH": environment["PATH"]}) == tmp_path / "other"


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        ("java.base@21.0.1\\n", "a Java without jdk.incubator.vector"),
        ("java.base@11.0.2\\njdk.incubator.vector@11\\n", "which is Java 11"),
        ("", "and it does not run"),
    ],
)
def test_what_spark_cannot_run_on_is_refused(tmp_path: Path, modules: str, reason: str) -> None:
    """The line names the Java, what is wrong with it, and what to install."""
    fake_java(tmp_path, modules)
    with pytest.raises(SparkMissingError, match=reason) as raised:
        java_home({"JAVA_HOME": str(tmp_path)})
    assert str(tmp_path) in str(raised.value)
    assert "install a full JDK 17 or newer" in str(raised.value)


def test_no_java_at_all_is_one_clear_line(tmp_path: Path) -> None:
    """Neither JAVA_HOME nor PATH has one."""
    with pytest.raises(SparkMissingError, match="none was found: install a full JDK 17"):
        java_home({"PATH": str(tmp_path)})
