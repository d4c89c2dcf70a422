"""Files that may contain a password: private from the first byte, and written in one place."""

import ast
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.common.private_files import open_private_directory, write_private
from featurewatch.stack.process import ports
from featurewatch.stack.process.ports import Ports
from tests.paths import PACKAGE, ROOT

OTHER_FILES = {
    "agents/membership.py": "a lock",
    "client/offsets.py": "positions in topics",
    "cli/commands/upgrade/plan.py": "a plan, which holds no secret",
    "cli/command_line.py": "the formatter of help, whose method has such a name",
    "cli/commands/history/command.py": "the plot",
    "cli/runtime/embedded_bus.py": "a lock, and the bus's address",
    "cli/runtime/lake.py": "/dev/null",
    "cli/commands/releases/learn.py": "learned tables of a release, which hold no secret",
    "cli/output/generated_files.py": "rules and dashboards, which hold no secret",
    "cli/output/live_printer.py": "/dev/null",
    "reference/kraft/formats.py": "the state of a voter and its snapshots, which hold no secret",
    "reference/kraft/storage/disk.py": "the log of a voter, which holds no secret",
    "reference/kraft/storage/identity.py": "a lock",
    "stack/java/jars.py": "a lock, and the sizes of jars",
    "stack/java/maven.py": "jars",
    "stack/kafka/archive_training.py": "an empty class archive",
    "stack/kafka/node.py": "a copy of meta.properties, which has no secret",
    "stack/process/ports.py": "locks",
    "common/private_files.py": "the one place",
    "stack/process/process.py": "logs of nodes, in which Kafka hides passwords",
    "stack/client.py": "a lock",
    "stack/supervisor.py": "a lock and a log",
    "pipeline/lake/locks.py": "an empty lock",
    "pipeline/lake/answers.py": "the answers of audits and replays",
    "pipeline/lake/version_checksum.py": "the checksum of a table's version",
    "pipeline/replay/archives.py": "logs of a support bundle",
    "pipeline/spark/worker/sitecustomize.py": "/dev/null",
    "kafka/client_config/pem_files.py": "keys, in memory or with mode 0600 from the first byte",
}
"""The files of the product that write others, and what."""
CREATES = re.compile(
    r"(?:^|.*\.)open\(.*(['\"][wax]b?\+?['\"]|O_CREAT|O_WRONLY|_FLAGS)"
    r"|.*\.(chmod|touch|NamedTemporaryFile)\("
)
SECRETS = re.compile(r"(?<!meta)\.properties|PROPERTIES|properties\(|password|jaas|sasl|pem\b")


def is_write(call: ast.Call) -> bool:
    """Whether a call may create a file."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in ("write_text", "write_bytes"):
        return True
    if name not in ("open", "fdopen", "chmod", "touch", "NamedTemporaryFile"):
        return False
    return CREATES.match(ast.unparse(call)) is not None


WRITES = re.compile(r"\b(write_text|write_bytes|open|fdopen|chmod|touch|NamedTemporaryFile)\b")
"""What the source of a file that has such a call contains; the others need not be parsed."""


def writes(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that may create a file."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_write(node))


def test_the_product_writes_such_files_in_one_place() -> None:
    """Every other file that is written is listed here, with what it contains."""
    writing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for text in [path.read_text()]
        if WRITES.search(text) and any(writes(ast.parse(text)))
    }
    assert sorted(writing) == sorted(OTHER_FILES)


def test_the_tests_write_such_files_there_too() -> None:
    """Configurations of nodes and clients, and keys."""
    others = []
    for path in (ROOT / "tests").rglob("*.py"):
        source = path.read_text()
        if not (WRITES.search(source) and SECRETS.search(source)):
            continue
        for function in (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)):
            if not (calls := [*writes(function)]):
                continue
            values = {
                ast.unparse(assignment.targets[0]): ast.unparse(assignment.value)
                for assignment in ast.walk(function)
                if isinstance(assignment, ast.Assign)
            }
            for call in calls:
                text = ast.unparse(call)
                receiver = text.partition(".write")[0]
                if SECRETS.search(text + values.get(receiver, "")):
                    others.append(f"{path.relative_to(ROOT)}:{call.lineno}: {text}")
    assert others == []


def test_a_private_file_is_private_from_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the umask is, and whatever was there: an open file, or a link to another one."""
    victim, file = tmp_path / "victim", tmp_path / "file"
    victim.write_text("precious")
    file.symlink_to(victim)
    modes = []
    opened = os.open

    def recording(*arguments: object, **options: object) -> int:
        descriptor = opened(*arguments, **options)  # type: ignore[arg-type]
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", recording)
    umask = os.umask(0)
    try:
        write_private(file, "secret")
        write_private(file, b"another")
    finally:
        os.umask(umask)
    assert modes == [0o600, 0o600]
    assert (file.read_text(), victim.read_text()) == ("another", "precious")
    assert stat.S_IMODE(file.lstat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "victim"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory that everybody may write, as /tmp is, and two ports."""
    directory = tmp_path / "tmp"
    directory.mkdir()
    directory.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    monkeypatch.setattr(ports, "_RANGE", range(15_500, 15_504))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    ports._own_directory.cache_clear()
    return directory


def trap(directory: Path, victim: Path) -> None:
    """Links for every port that lead to a file of the victim."""
    victim.write_text("precious")
    directory.mkdir(exist_ok=True)
    for port in ports._RANGE:
        (directory / str(port)).symlink_to(victim)


@pytest.mark.parametrize("kind", ["open", "foreign", "link"])
def test_a_directory_that_another_user_made_is_not_used(
    temporary: Path, tmp_path: Path, kind: str
) -> None:
    """The links in it are not followed; the ports are reserved in a directory of our own."""
    directory, victim = temporary / f"featurewatch-ports-{os.getuid()}", tmp_path / "victim"
    if kind == "link":
        trap(temporary / "theirs", victim)
        (temporary / "theirs").chmod(0o700)
        directory.symlink_to(temporary / "theirs")
    else:
        trap(directory, victim)
        directory.chmod(0o777 if kind == "open" else 0o700)
    if kind == "foreign":
        if os.getuid() != 0:
            pytest.skip("only root can give a directory to another user")
        os.chown(directory, 12_345, 12_345)
    held = Ports()
    assert held.reserve() in ports._RANGE
    held.release()
    assert victim.read_text() == "precious"


def test_a_link_in_our_own_directory_is_not_followed(temporary: Path, tmp_path: Path) -> None:
    """A port whose lock is a link counts as taken."""
    trap(temporary / f"featurewatch-ports-{os.getuid()}", tmp_path / "victim")
    (temporary / f"featurewatch-ports-{os.getuid()}").chmod(0o700)
    free = temporary / f"featurewatch-ports-{os.getuid()}" / "15501"
    free.unlink()
    held = Ports()
    assert held.reserve() == 15501
    held.release()
    assert (tmp_path / "victim").read_text() == "precious"
    assert stat.S_IMODE(free.stat().st_mode) == 0o600


def test_the_runtime_directory_comes_first(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG_RUNTIME_DIR is this user's own; one that others may write is not used."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    held = Ports()
    held.reserve()
    held.release()
    assert stat.S_IMODE((runtime / "featurewatch-ports").stat().st_mode) == 0o700
    assert list(temporary.iterdir()) == []
    runtime.chmod(0o777)
    assert open_private_directory(runtime / "featurewatch-ports") is None
