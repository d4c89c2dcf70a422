"""The cache of jars: complete, offline and repaired, and the errors if jars are not available."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from featurewatch.deploy.errors import ArtifactError
from featurewatch.deploy.java.jars import Cache, Jars, default_cache, parse_release, tool_command
from tests.paths import SRC

RELEASE = "3.9.1"


def filled(directory: Path, sizes: dict[str, int]) -> Cache:
    """A cache with a class path that is listed as complete."""
    cache = Cache(directory)
    for name, size in sizes.items():
        path = cache.repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    marker = directory / "class-paths" / f"kafka-{RELEASE}-server.json"
    marker.parent.mkdir()
    marker.write_text(json.dumps(sizes))
    return cache


def without_network(cache: Path) -> subprocess.CompletedProcess[str]:
    """Requests a class path while every connection is refused."""
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from featurewatch.deploy.java.jars import Cache\n"
        "from featurewatch.deploy.errors import ArtifactError\n"
        f"try: print(len(Cache(Path(sys.argv[1])).class_path({RELEASE!r})))\n"
        "except ArtifactError as error: sys.exit(str(error))\n"
    )
    proxy = "http://127.0.0.1:9"  # the discard port: refused
    environment = {"PYTHONPATH": str(SRC), "HTTPS_PROXY": proxy, "HTTP_PROXY": proxy}
    return subprocess.run(
        [sys.executable, "-c", code, str(cache)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_complete_cache_needs_no_network(tmp_path: Path) -> None:
    """A complete class path is returned without a connection and without output."""
    filled(tmp_path, {"a/a.jar": 3, "b/b.jar": 4})
    result = without_network(tmp_path)
    assert (result.stdout, result.stderr) == ("2\n", "")


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_incomplete_cache_is_not_used(tmp_path: Path, damage: str) -> None:
    """A truncated or missing jar is fetched again; without a network the error is one line."""
    cache = filled(tmp_path, {"a/a.jar": 3, "b/b.jar": 4})
    jar = cache.repository / "b/b.jar"
    if damage == "cut":
        jar.write_bytes(b"x")
    else:
        jar.unlink()
    result = without_network(tmp_path)
    assert result.returncode == 1
    *_, line = result.stderr.splitlines()
    assert "Kafka 3.9.1 could not be fetched" in line
    assert "check the network" in line
    assert not jar.exists()
    assert not list(cache.repository.glob(".part-*"))


@pytest.mark.parametrize(
    ("release", "words"),
    [("4.4.0", "from 3.3 to 4.3"), ("3.2.3", "from 3.3 to 4.3"), ("4", "like 4.3.0"), ("", "like")],
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
