"""The wheel and the sdist: what they hold, and that they live beside packages of the same names."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.pipeline.replay.logs import Log, level, registration

ROOT = Path(__file__).parents[1]
FOLDERS = tuple(
    sorted(link.name for link in (ROOT / "src/featurewatch").iterdir() if link.is_symlink())
)
NO_PART_OF_IT = {
    "deploy/kubernetes/spark.Dockerfile": "it is given the wheel",
    "deploy/compose": "it runs the image",
    "deploy/helm": "it runs the image",
    "deploy/image": "it is made of the sdist or a clone",
    "deploy/systemd": "it runs what is installed",
}
"""Files and folders that are in the sdist only, each with the reason."""
CACHES = ("__pycache__", ".cache", ".*_cache", ".hypothesis")
UNTRACKED = (*CACHES, ".git", ".venv*", "build", "dist", "*.egg-info")

pytestmark = pytest.mark.network


def run(*command: str | Path, cwd: Path | None = None, code: int = 0) -> str:
    """What the command prints; without the path that this run imports from."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel from a fresh copy of the tree, and one from the copy's sdist."""
    copy = tmp_path_factory.mktemp("source") / "featurewatch"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*UNTRACKED))
    built = copy.parent
    options = ("--installer", "uv") if shutil.which("uv") else ()
    for arguments in (("--wheel", "-o", built / "tree"), ("-o", built / "sdist")):
        run(sys.executable, "-m", "build", *options, *arguments, copy)
    (tree,), (sdist,) = (list((built / name).glob("*.whl")) for name in ("tree", "sdist"))
    assert [*(built / "sdist").glob("featurewatch-*.tar.gz")]
    return tree, sdist


def files(wheel: Path) -> Mapping[str, bytes]:
    """What the wheel holds, by path."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_folders_survive_a_clone(tmp_path: Path) -> None:
    """Each folder is imported by a relative link, which git keeps."""
    clone = ("git", "clone", "--quiet", ROOT, tmp_path / "clone")
    if not (ROOT / ".git").exists():
        pytest.skip("there is no git repository")
    run(*clone)
    package = tmp_path / "clone/src/featurewatch"
    links = {link.name: os.readlink(link) for link in package.iterdir() if link.is_symlink()}
    assert links == {name: f"../../{name}" for name in FOLDERS}
    assert all((package / name / "__init__.py").is_file() for name in FOLDERS)


def test_the_wheel_holds_the_package_and_nothing_else(wheels: tuple[Path, Path]) -> None:
    """Every file of the folders, data files and the marker of types included."""
    held = {name for name in files(wheels[0]) if ".dist-info/" not in name}
    top = ("__init__.py", "__main__.py", "py.typed")
    wanted = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not any(path.is_relative_to(ROOT / name) for name in NO_PART_OF_IT)
    }
    assert held == {f"featurewatch/{name}" for name in (*top, *wanted)}


def test_the_sdist_makes_the_same_wheel(wheels: tuple[Path, Path]) -> None:
    """File by file, metadata included."""
    tree, sdist = map(files, wheels)
    assert tree == sdist


def test_the_sdist_holds_what_installs_it(wheels: tuple[Path, Path]) -> None:
    """The chart, the image, the unit and the compose file, at the paths that the documents name."""
    (sdist,) = wheels[1].parent.glob("featurewatch-*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(
        ["git", "ls-files", "-z", "docs", "constraints.txt", ".dockerignore", *NO_PART_OF_IT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("there is no git repository")
    assert set(listed.stdout.split("\0")[:-1]) - held == set()


def test_it_lives_beside_pytables(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    """Installed, used and removed in an environment where ``tables`` is somebody else's package.

    The cluster of the log directory is not ready for a release: its one broker is fenced.
    """
    environment = tmp_path / "environment"
    python = environment / "bin/python"
    pinned = ("-c", ROOT / "constraints.txt")
    if uv := shutil.which("uv"):
        run(uv, "venv", "--python", sys.executable, environment)
        pip: tuple[str | Path, ...] = (uv, "pip")
        target: tuple[str | Path, ...] = ("--python", python)
        remove: tuple[str | Path, ...] = (*pip, "uninstall", *target)
    else:
        run(sys.executable, "-m", "venv", environment)
        pip, target = (python, "-m", "pip"), ()
        remove = (*pip, "uninstall", "--yes")
    run(*pip, "install", *target, *pinned, wheels[0], "tables>=3.10")

    modules = "import tables, featurewatch.tables as ours; print(tables.__file__, ours.__file__)"
    theirs, ours = run(python, "-c", modules, cwd=tmp_path).split()
    assert Path(theirs).parent.name == "tables"
    assert Path(ours).parent.parts[-2:] == ("featurewatch", "tables")
    run(python, "-c", "import tables; tables.open_file", cwd=tmp_path)

    command = environment / "bin/featurewatch"
    assert run(command, "--version", cwd=tmp_path).strip() == "featurewatch 0.1.0"
    Log().elect(1).add(level(21), registration(1, 25)).write(log := tmp_path / "log")
    arguments = ("readiness", "--log-directory", log, "--target", "3.9", "--json")
    assert json.loads(run(command, *arguments, cwd=tmp_path, code=3))["verdict"] == "no"

    run(*remove, "featurewatch", cwd=tmp_path)
    run(python, "-c", "import tables; tables.open_file", cwd=tmp_path)
    run(python, "-c", "import featurewatch", cwd=tmp_path, code=1)
    assert not command.exists()
