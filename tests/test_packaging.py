"""The package in every form in which somebody gets it, and the links at the repository's root.

The tests share one environment, in which they install one form after the other.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.releasing.checks import version_of
from tests.paths import PACKAGE, ROOT, SRC
from tests.pipeline.replay.logs import Log, level, registration

LINKS = ("agents", "streams", "tables")
"""The links at the root, to the folders of the same names in the package."""
VERSION = version_of((ROOT / "pyproject.toml").read_text())
UNTRACKED = (
    *("__pycache__", ".cache", ".*_cache", ".hypothesis"),
    *(".git", ".venv*", "build", "dist", "*.egg-info"),
)

network = pytest.mark.network


def run(
    *command: str | Path, cwd: Path | None = None, code: int = 0, path: Path | None = None
) -> str:
    """Returns what the command prints, with ``path`` as its ``PYTHONPATH``."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    if path:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def source_files() -> set[str]:
    """Returns the files of the package in this tree, relative to ``src``."""
    return {
        str(path.relative_to(SRC))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh copy of the tree."""
    copy = tmp_path_factory.mktemp("source") / "featurewatch"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*UNTRACKED))
    return copy


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment in which packages are installed and removed, by uv where there is one."""

    directory: Path

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.directory / "bin/python"

    @property
    def command(self) -> Path:
        """The command ``featurewatch``."""
        return self.directory / "bin/featurewatch"

    def create(self) -> None:
        """Creates the environment, without packages."""
        if uv := shutil.which("uv"):
            run(uv, "venv", "--python", sys.executable, self.directory)
        else:
            run(sys.executable, "-m", "venv", self.directory)

    def install(self, *requirements: str | Path) -> None:
        """Installs what is given, in the versions that are tested."""
        # Nine tenths of what pip would compile is never imported.
        options = () if shutil.which("uv") else ("--no-compile",)
        self._pip("install", *options, "-c", ROOT / "constraints.txt", *requirements)

    def replace(self, *form: str | Path) -> None:
        """Installs featurewatch from another form of it; what it needs is there."""
        options = ("--no-deps", "--no-build-isolation")
        if self.command.exists():
            self.remove("featurewatch")
        self._pip("install", *options, *form)

    def remove(self, name: str) -> None:
        """Removes a package."""
        self._pip("uninstall", *(() if shutil.which("uv") else ("--yes",)), name)

    def files(self) -> set[str]:
        """Returns the files of the package that the interpreter imports, as `source_files` does."""
        program = (
            "import pathlib, featurewatch; package = pathlib.Path(featurewatch.__file__).parent;"
            "[print(path.relative_to(package.parent)) for path in package.rglob('*')"
            " if path.is_file() and '__pycache__' not in path.parts]"
        )
        return set(run(self.python, "-c", program, cwd=self.directory).splitlines())

    def _pip(self, verb: str, *arguments: str | Path) -> None:
        if uv := shutil.which("uv"):
            run(uv, "pip", verb, "--python", self.python, *arguments)
        else:
            run(self.python, "-m", "pip", verb, "--disable-pip-version-check", *arguments)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Environment:
    """An environment with the package, what it needs, and what the tests need beside it."""
    environment = Environment(tmp_path_factory.mktemp("installed"))
    environment.create()
    environment.install(source, "build", "setuptools>=77", "coverage")
    return environment


@pytest.fixture(scope="module")
def sdist(environment: Environment, source: Path) -> Path:
    """The sdist of the tree, with the wheel that is built from it beside it."""
    directory = source.parent / "dist"
    run(environment.python, "-m", "build", "--no-isolation", "-o", directory, source)
    (archive,) = directory.glob("featurewatch-*.tar.gz")
    return archive


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """The wheel that is built from the sdist."""
    (built,) = sdist.parent.glob("featurewatch-*.whl")
    return built


@pytest.fixture(scope="module")
def log_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory of a cluster with a fenced broker, which is not ready for a release."""
    directory = tmp_path_factory.mktemp("log") / "__cluster_metadata-0"
    Log().elect(1).add(level(21), registration(1, 25)).write(directory)
    return directory


def assert_runs(environment: Environment, log_directory: Path) -> None:
    """Asserts that what is installed answers three commands, apart from the repository."""
    cwd = log_directory.parent
    assert run(environment.command, "--version", cwd=cwd).strip() == f"featurewatch {VERSION}"
    assert "--keep" in run(environment.command, "demo", "--help", cwd=cwd)
    arguments = ("readiness", "--log-directory", log_directory, "--target", "3.9", "--json")
    assert json.loads(run(environment.command, *arguments, cwd=cwd, code=3))["verdict"] == "no"


def contents(wheel: Path) -> Mapping[str, bytes]:
    """Returns what the wheel holds, by path."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def git(*arguments: str | Path) -> str:
    """Returns what git prints in the repository; without one, the test is skipped."""
    if not (ROOT / ".git").exists():
        pytest.skip("there is no git repository")
    return run("git", *arguments, cwd=ROOT)


def test_the_links_lead_to_folders_of_the_package() -> None:
    """Git keeps them as relative links, and there are no others."""
    listed = [line.split(maxsplit=3) for line in git("ls-files", "--stage").splitlines()]
    links = [Path(path) for mode, _, _, path in listed if mode == "120000"]
    assert [str(link) for link in links] == [*LINKS]
    for link in links:
        assert (ROOT / link).readlink() == Path("src/featurewatch", link)
        assert (ROOT / link / "__init__.py").is_file()


@network
def test_the_wheel_and_the_sdist_hold_the_files_of_the_package(
    source: Path, wheel: Path, environment: Environment, log_directory: Path
) -> None:
    """A wheel of the tree, the wheel of the sdist and an editable install: file by file."""
    held = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert held == source_files()
    tree = source.parent / "tree"
    run(environment.python, "-m", "build", "--no-isolation", "--wheel", "-o", tree, source)
    assert contents(*tree.glob("*.whl")) == contents(wheel)
    environment.replace(wheel)
    assert environment.files() == source_files()
    environment.replace("-e", source)
    assert environment.files() == source_files()
    assert_runs(environment, log_directory)


@network
def test_an_archive_without_links_installs(
    environment: Environment, tmp_path: Path, log_directory: Path
) -> None:
    """pip unpacks the links of a zip as files that hold their targets."""
    archive = tmp_path / "featurewatch.zip"
    git("archive", "--format=zip", "--prefix=featurewatch/", "-o", archive, "HEAD")
    with zipfile.ZipFile(archive) as packed:
        assert packed.read("featurewatch/tables") == b"src/featurewatch/tables"
    environment.replace(archive)
    assert environment.files() == set(contents_of_head())
    assert_runs(environment, log_directory)


@network
@pytest.mark.nightly
def test_a_clone_without_links_installs(
    environment: Environment, tmp_path: Path, log_directory: Path
) -> None:
    """As git clones where the file system has none."""
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--no-local", "--depth=1", "-c", "core.symlinks=false", ROOT, clone)
    assert (clone / "tables").read_text() == "src/featurewatch/tables"
    environment.replace(clone)
    assert environment.files() == set(contents_of_head())
    assert_runs(environment, log_directory)


def contents_of_head() -> list[str]:
    """Returns the files of the package in the last commit, relative to ``src``."""
    return [
        path.removeprefix("src/")
        for path in git("ls-tree", "-r", "--name-only", "HEAD", "src").splitlines()
    ]


@network
def test_the_sdist_holds_what_installs_it(sdist: Path) -> None:
    """Documents, examples, and all below ``deploy``, where the documents name them; no links."""
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    shipped = ("docs", "deploy", "examples", "constraints.txt", ".dockerignore")
    listed = git("ls-files", *shipped).splitlines()
    assert set(listed) - members.keys() == set()
    assert not members.keys() & {*LINKS, "tests"}
    assert not any(member.issym() for member in members.values())


@network
@pytest.mark.nightly
def test_pytables_is_imported_at_the_root(
    environment: Environment, wheel: Path, tmp_path: Path
) -> None:
    """As anywhere else, beside featurewatch and when that is removed.

    PyTables is the package that others import as ``tables``.
    """
    environment.install("tables>=3.10")
    environment.replace(wheel)
    modules = "import tables, featurewatch.tables as ours; print(tables.__file__, ours.__file__)"
    for directory in (ROOT, tmp_path):
        theirs, ours = run(environment.python, "-c", modules, cwd=directory).split()
        assert Path(theirs).is_relative_to(environment.directory), directory
        assert Path(theirs).parts[-2:] == ("tables", "__init__.py")
        assert Path(ours).parts[-3:] == ("featurewatch", "tables", "__init__.py")
    environment.remove("featurewatch")
    run(environment.python, "-c", "import tables; tables.open_file", cwd=tmp_path)
    run(environment.python, "-c", "import featurewatch", cwd=tmp_path, code=1)
    assert not environment.command.exists()


@pytest.mark.parametrize("name", LINKS)
def test_the_links_cannot_be_imported(name: str) -> None:
    """Without another package of the name the import fails, where featurewatch is and is not."""
    program = f"""
try:
    import {name}
except ModuleNotFoundError as error:
    print(error.name, {name!r} in __import__("sys").modules)
"""
    # -S: the packages of this environment are not seen.
    bare = (sys.executable, "-S", "-c", program)
    assert run(*bare, cwd=ROOT, path=SRC) == f"{name} False\n"
    assert run(*bare, cwd=ROOT) == "featurewatch False\n"


@network
def test_coverage_reports_the_package(environment: Environment, tmp_path: Path) -> None:
    """Each module once, at the repository's root with its links."""
    data = tmp_path / "data"
    coverage = (environment.python, "-m", "coverage")
    run(
        *(*coverage, "run", f"--data-file={data}", "--source=featurewatch"),
        *("-m", "featurewatch", "--help"),
        cwd=ROOT,
        path=SRC,
    )
    report = tmp_path / "report.json"
    run(*coverage, "json", f"--data-file={data}", "-o", report, cwd=ROOT)
    reported = json.loads(report.read_text())["files"]
    modules = {f"src/{name}" for name in source_files() if name.endswith(".py")}
    assert reported.keys() == modules
    assert reported["src/featurewatch/cli/main.py"]["summary"]["covered_lines"] > 0


@network
@pytest.mark.nightly
def test_pyright_finds_each_file_once(environment: Environment) -> None:
    """It counts as many files as there are, before it looks into any."""
    environment.install("basedpyright")
    command = (environment.directory / "bin/basedpyright", "--verbose", "-p", ROOT)
    found = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as pyright:
        assert pyright.stdout
        for line in pyright.stdout:
            if match := re.fullmatch(r"Found (\d+) source files?\n", line):
                found = int(match[1])
                break
        pyright.kill()  # before it looks into them, which takes minutes
    files = [path for name in ("src", "tests", "scripts") for path in (ROOT / name).rglob("*.py*")]
    assert found == len([path for path in files if path.suffix in (".py", ".pyi")])
