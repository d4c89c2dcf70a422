"""The cache of jars: complete, offline and repaired, and the errors if jars are not available."""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from featurewatch.kafka.releases import release_files, release_number
from featurewatch.stack.errors import ArtifactError
from featurewatch.stack.java import jars, maven
from featurewatch.stack.java.jars import Cache, Jars, default_cache, parse_release, tool_command
from featurewatch.stack.java.lock import LOCK_FILE, SPARK, JarLock, jar_lock, path_of
from featurewatch.stack.kafka.specs import KAFKA_WITH_ZOOKEEPER, NEWEST_TESTED
from scripts.java_source import COMPILER
from scripts.lock_jars import PROGRAMS, render
from scripts.spark_release import connectors

RELEASE = "3.9.1"


def lock_of(contents: Mapping[str, bytes]) -> JarLock:
    """A lock of these jars, which are the server's class path of one release."""
    sha256 = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    return JarLock(sha256, {RELEASE: {"server": list(contents)}})


CONTENTS = {"a/a.jar": b"aaa", "b/b.jar": b"bbbb"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A complete cache of two jars, and a lock that lists them; every connection is refused."""
    cache = Cache(tmp_path)
    for name, content in CONTENTS.items():
        path = cache.repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setattr(jars, "jar_lock", lambda: lock_of(CONTENTS))
    for proxy in ("HTTPS_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")  # the discard port: refused
    monkeypatch.setattr(maven, "_ATTEMPTS", 1)  # another attempt waits, and is refused as well
    return cache


@pytest.fixture
def digested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the jars whose bytes were read, in that order."""
    names: list[str] = []
    digest = jars._digest

    def recording(file: Path) -> str:
        names.append(file.name)
        return digest(file)

    monkeypatch.setattr(jars, "_digest", recording)
    return names


def test_complete_cache_needs_no_network(
    cache: Cache, capsys: pytest.CaptureFixture[str], digested: list[str]
) -> None:
    """A complete class path is returned without a connection and without output; its jars are
    read once."""
    expected = [cache.repository / name for name in CONTENTS]
    assert cache.class_path(RELEASE) == expected
    assert digested == ["a.jar", "b.jar"]
    assert cache.class_path(RELEASE) == expected
    assert digested == ["a.jar", "b.jar"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("damage", ["cut", "missing", "altered"])
def test_incomplete_cache_is_not_used(
    cache: Cache, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    """A truncated, altered or missing jar is fetched again; without a network the error is one
    line."""
    cache.class_path(RELEASE)
    jar = cache.repository / "b/b.jar"
    if damage == "missing":
        jar.unlink()
    else:
        jar.write_bytes(b"x" if damage == "cut" else b"evil")
    with pytest.raises(ArtifactError, match=r"Kafka 3\.9\.1 could not be fetched") as raised:
        cache.class_path(RELEASE)
    assert "check the network" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "fetching 1 jars" in capsys.readouterr().err
    assert not jar.exists()
    assert not list(cache.repository.glob(".part-*"))


def test_a_jar_that_was_touched_is_read_again(cache: Cache, digested: list[str]) -> None:
    """Another size or modification time, or another lock: the digest decides."""
    cache.class_path(RELEASE)
    os.utime(cache.repository / "a/a.jar", ns=(1, 1))
    digested.clear()
    cache.class_path(RELEASE)
    assert digested == ["a.jar"]


def test_a_jar_that_is_not_locked_is_refused(cache: Cache) -> None:
    """Even if it is in the cache; and a release without a lock names its neighbours."""
    (cache.repository / "c.jar").write_bytes(b"c")
    with pytest.raises(ArtifactError, match=r"c\.jar is not in jars\.lock\.json"):
        cache.require(["c.jar"], "Kafka")
    with pytest.raises(ArtifactError, match=r"^Kafka 3\.9\.77 cannot be started.*choose 3\.9\.1"):
        cache.class_path("3.9.77")


NEWEST_WITH_TOOLS = [name for name, of in jar_lock().class_paths.items() if Jars.TOOLS in of][-1]
"""Maven Central does not have the tools of every release."""


def test_the_lock_has_all_that_is_wanted() -> None:
    """Each release of the tables and of the tests, Spark's jars, and the compiler; every class path
    has Kafka's own jars of that release."""
    lock = jar_lock()
    assert {release_number(release) for release in lock.class_paths} == {
        file.number for file in release_files()
    }
    assert {file.content["kafka"] for file in release_files()} <= set(lock.class_paths)
    assert Jars.SERVER in lock.class_paths[NEWEST_TESTED]
    for release in (NEWEST_WITH_TOOLS, KAFKA_WITH_ZOOKEEPER):
        assert set(lock.class_paths[release]) == set(Jars)
    for release, of in lock.class_paths.items():
        for name, paths in of.items():
            assert path_of(f"org.apache.kafka:kafka_2.13:{release}") in paths, (release, name)
            assert all(path in lock.sha256 for path in paths)
    assert set(lock.programs) == {*PROGRAMS, SPARK}
    assert all(path in lock.sha256 for paths in lock.programs.values() for path in paths)
    assert path_of(COMPILER) in lock.sha256
    assert {path_of(coordinate) for coordinate in connectors()} <= set(lock.programs[SPARK])
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in lock.sha256.values())


def test_the_lock_is_as_the_script_writes_it() -> None:
    """``python -m scripts.lock_jars`` writes it; nobody edits it by hand."""
    text = LOCK_FILE.read_text()
    assert render(json.loads(text)) == text


@pytest.mark.stack
def test_the_cache_of_this_machine_is_as_locked(stack_cache: Cache) -> None:
    """Every byte of the jars that the tests start."""
    paths = {
        path
        for release in (NEWEST_TESTED, NEWEST_WITH_TOOLS, KAFKA_WITH_ZOOKEEPER)
        for paths_of_one in jar_lock().class_paths[release].values()
        for path in paths_of_one
        if (stack_cache.repository / path).is_file()
    }
    assert paths
    for path in paths:
        digest = hashlib.sha256((stack_cache.repository / path).read_bytes()).hexdigest()
        assert digest == jar_lock().sha256[path], path


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("99.0.0", r"from 3\.3 to \d"),
        ("3.2.3", r"from 3\.3 to \d"),
        ("4", r"like \d\.\d+\.0"),
        ("", "like"),
    ],
)
def test_unknown_releases(release: str, words: str) -> None:
    """An unsupported release is rejected before anything is fetched."""
    with pytest.raises(ArtifactError, match=words):
        parse_release(release)


def test_cache_directory(tmp_path: Path) -> None:
    """FEATUREWATCH_CACHE overrides XDG_CACHE_HOME."""
    xdg = {"XDG_CACHE_HOME": str(tmp_path)}
    assert default_cache(xdg) == tmp_path / "featurewatch"
    assert default_cache(xdg | {"FEATUREWATCH_CACHE": "/elsewhere"}) == Path("/elsewhere")


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    """A cache below a file raises a one-line error with the remedy."""
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="FEATUREWATCH_CACHE"):
        Cache(tmp_path / "file" / "cache").class_path(RELEASE)


@pytest.mark.stack
def test_a_missing_jar_is_fetched_again(stack_cache: Cache, tmp_path: Path) -> None:
    """A missing jar is fetched again from Maven Central, with the same bytes."""
    original = stack_cache.class_path(RELEASE)
    victim = next(path for path in original if path.name.startswith("slf4j-simple"))
    before = victim.read_bytes()
    copy = Cache(tmp_path)
    for path in stack_cache.repository.rglob("*"):
        target = copy.repository / path.relative_to(stack_cache.repository)
        if path.is_file() and path != victim:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.hardlink_to(path)
    fetched = copy.class_path(RELEASE)
    assert {path.name for path in fetched} == {path.name for path in original}
    assert (copy.repository / victim.relative_to(stack_cache.repository)).read_bytes() == before


@pytest.mark.stack
@pytest.mark.parametrize(
    ("release", "package"), [("3.9.1", "kafka"), ("4.3.0", "org.apache.kafka")]
)
def test_tools_run(stack_cache: Cache, release: str, package: str) -> None:
    """The tools' class path runs the release's own log dumper."""
    main = f"{package}.tools.DumpLogSegments"
    command = tool_command(release, main, "--version", cache=stack_cache)
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(release)
    assert len(stack_cache.class_path(release, Jars.TOOLS)) > 50
