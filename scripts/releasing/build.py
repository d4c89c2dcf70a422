"""Builds the files of a release from the files of a commit."""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scripts.releasing.archives import Member, below, pack, unpack, write_tree
from scripts.releasing.checks import ReleaseError, notes_of, version_of
from scripts.releasing.shells import shell_files

SUMS: Final = "SHA256SUMS"
_CHART: Final = "deploy/helm/featurewatch"
_LOCK: Final = "deploy/image/requirements.txt"
_IMAGE: Final = (
    ".dockerignore",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "deploy/image",
    "pyproject.toml",
    "src",
)
"""What `docker build` needs of the repository."""


def build(source: Mapping[str, Member], epoch_s: int) -> dict[str, bytes]:
    """Returns the files of a release, by name.

    ``source`` are the files of a commit by path, ``epoch_s`` its time in Unix seconds: the time of
    everything in archives. The same arguments give the same bytes.

    Raises:
        ReleaseError: The change log has no entry for the version, or a tool failed.
    """
    version = version_of(source["pyproject.toml"].content.decode())
    notes = notes_of(source["CHANGELOG.md"].content.decode(), version)
    root = f"featurewatch-{version}"
    with tempfile.TemporaryDirectory(prefix="featurewatch-release-") as directory:
        tree = Path(directory, "tree")
        write_tree(source, tree)
        sdist = _sdist(tree, epoch_s)
        # From the sdist, as whoever builds a wheel from it does.
        unpacked = Path(directory, "sdist")
        write_tree(unpack(sdist), unpacked)
        wheel_name, wheel = _built(unpacked / root, "--wheel", epoch_s)
        bom = _sbom(tree, epoch_s)
    chart = {
        path.removeprefix("deploy/helm/"): member
        for path, member in below(source, (_CHART,)).items()
    }
    files = {
        f"{root}.tar.gz": sdist,
        wheel_name: wheel,
        f"{root}-image.tar.gz": pack(below(source, _IMAGE, root=f"{root}-image/"), epoch_s),
        f"featurewatch-chart-{version}.tgz": pack(chart, epoch_s),
        f"{root}-shell.tar.gz": pack(shell_files(version, epoch_s), epoch_s),
        f"{root}.cdx.json": bom,
        f"{root}-notes.md": notes.encode(),
    }
    return {**files, SUMS: sums(files).encode()}


def sums(files: Mapping[str, bytes]) -> str:
    """Returns what ``sha256sum -c`` takes, in the order of names."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))


def _sdist(tree: Path, epoch_s: int) -> bytes:
    """The sdist of a tree: setuptools' own has the times and the owner of the build."""
    _, archive = _built(tree, "--sdist", epoch_s)
    return pack(unpack(archive), epoch_s)


def _built(tree: Path, kind: str, epoch_s: int) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="featurewatch-build-") as directory:
        _run(["build", "--no-isolation", kind, "--outdir", directory, str(tree)], tree, epoch_s)
        (file,) = Path(directory).iterdir()
        return file.name, file.read_bytes()


def _sbom(tree: Path, epoch_s: int) -> bytes:
    """The bill of materials of what the image installs: each package with its digests."""
    bom = tree / "bom.json"
    options = ["--pyproject", "pyproject.toml", "--mc-type", "application", "--sv", "1.6"]
    options += ["--output-reproducible", "--of", "JSON", "-o", str(bom)]
    _run(["cyclonedx_py", "requirements", *options, _LOCK], tree, epoch_s)
    return bom.read_bytes()


def _run(arguments: list[str], directory: Path, epoch_s: int) -> None:
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment = {
        **inherited,
        "SOURCE_DATE_EPOCH": str(epoch_s),
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        umask=0o022,
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise ReleaseError(f"{arguments[0]} failed: {lines[-1] if lines else 'it said nothing'}")
