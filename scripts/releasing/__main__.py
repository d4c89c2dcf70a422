"""Builds a release of the last commit, twice, and writes it if both are the same.

Usage: ``python -m scripts.releasing [--out DIRECTORY] [--tag NAME]``. ``--out`` is ``dist`` by
default and must be empty or absent. With ``--tag`` it fails unless that is the version's, as in
``v0.1.0``.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from scripts.generators import ROOT
from scripts.releasing.archives import Member, unpack
from scripts.releasing.build import SUMS, build
from scripts.releasing.checks import ReleaseError, version_of


def main(arguments: list[str]) -> int:
    """Builds, and prints the hashes of the files."""
    parser = argparse.ArgumentParser(prog="python -m scripts.releasing")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--tag", default="")
    options = parser.parse_args(arguments)
    try:
        print(release(ROOT, options.out, options.tag), end="")
    except ReleaseError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def release(repository: Path, directory: Path, tag: str = "") -> str:
    """Writes the files of a release of the last commit; returns their hashes.

    Raises:
        ReleaseError: There are changes that are not committed, the directory is not empty, the tag
            is another version's, or two builds differ.
    """
    if changed := _git(repository, "status", "--porcelain").decode().strip():
        first = changed.splitlines()[0]
        raise ReleaseError(f"commit or remove what is changed: {first} (a release is a commit)")
    if directory.is_dir() and any(directory.iterdir()):
        raise ReleaseError(f"{directory} has files already: remove them, or pass --out")
    source = committed(repository)
    version = version_of(source["pyproject.toml"].content.decode())
    if tag not in ("", f"v{version}"):
        raise ReleaseError(f"the tag {tag} is not v{version}, the version in pyproject.toml")
    epoch_s = int(_git(repository, "show", "--no-patch", "--format=%ct", "HEAD"))
    files = build(source, epoch_s)
    again = build(source, epoch_s)
    if different := [name for name in files if files[name] != again.get(name)]:
        raise ReleaseError(f"two builds differ in {', '.join(different)}")
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return files[SUMS].decode()


def committed(repository: Path) -> dict[str, Member]:
    """Returns the files of the last commit, by path."""
    return unpack(_git(repository, "archive", "--format=tar", "HEAD"))


def _git(repository: Path, *arguments: str) -> bytes:
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
