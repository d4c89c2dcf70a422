"""The images: what a linter says of them, and that they install what is tested."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import ROOT

IMAGE = ROOT / "deploy/image"
CONTAINERFILES = (IMAGE / "Containerfile", ROOT / "deploy/kubernetes/spark.Dockerfile")


@pytest.mark.parametrize("file", CONTAINERFILES, ids=lambda file: file.name)
def test_hadolint_finds_nothing(file: Path) -> None:
    """Every rule of hadolint holds, or is switched off in the file with a reason."""
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_hadolint_finds_what_is_wrong(tmp_path: Path) -> None:
    """The linter that is used would see a package that is not pinned."""
    file = tmp_path / "Containerfile"
    file.write_text("FROM debian\nRUN apt-get install curl\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "DL3008" in done.stdout


def pinned(file: Path) -> dict[str, str]:
    """The versions in a file of pip, by the names of the packages."""
    pins = re.findall(r"^([\w.-]+)==([\w.!+-]+)", file.read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


@pytest.mark.parametrize("name", ["requirements.txt", "build-requirements.txt"])
def test_every_package_of_the_image_has_digests(name: str) -> None:
    """Nothing is in the list without a version and at least one SHA-256."""
    lines = (IMAGE / name).read_text().splitlines()
    entries = "\n".join(line for line in lines if not line.startswith("#"))
    packages = re.split(r"\n(?=\S)", entries.strip())
    assert packages
    for package in packages:
        assert re.match(r"[\w.-]+==[\w.]+ \\\n", package)
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", package)


def test_the_image_installs_the_versions_that_are_tested() -> None:
    """Those of constraints.txt."""
    tested = pinned(ROOT / "constraints.txt")
    installed = pinned(IMAGE / "requirements.txt")
    assert {name: version for name, version in installed.items() if tested[name] != version} == {}


def test_the_image_has_all_that_featurewatch_needs() -> None:
    """Its dependencies and theirs, and those of two extras, and none of another extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = (*project["dependencies"], *extras["rocksdb"], *extras["msk"])
    queue = [Requirement(text) for text in wanted]
    needed: set[str] = set()
    visited: set[str] = set()
    while queue:
        requirement = queue.pop()
        needed.add(canonicalize_name(requirement.name))
        if (known := f"{requirement.name}{sorted(requirement.extras)}") not in visited:
            visited.add(known)
            queue += _dependencies(requirement)
    assert needed == pinned(IMAGE / "requirements.txt").keys()


def _dependencies(requirement: Requirement) -> Iterator[Requirement]:
    """What an installed package needs here, with the extras that are wanted of it."""
    for text in requires(requirement.name) or ():
        dependency = Requirement(text)
        extras = requirement.extras or {""}
        if dependency.marker is None or any(
            dependency.marker.evaluate({"extra": extra}) for extra in extras
        ):
            yield dependency


def test_the_image_runs_without_rights() -> None:
    """By a numeric user, which Kubernetes can check, and with a command that needs no shell."""
    text = (IMAGE / "Containerfile").read_text()
    last = text.rpartition("\nFROM ")[2]
    assert "\nUSER 65532:65532\n" in last
    assert 'ENTRYPOINT ["/opt/featurewatch/bin/featurewatch"]' in last
    assert not re.search(r"^(RUN|HEALTHCHECK|ADD)\b", last, re.MULTILINE)
    assert text.count("--require-hashes") == 2
