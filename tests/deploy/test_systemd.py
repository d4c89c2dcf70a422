"""The unit of systemd: what systemd says of it, and that processes run under its filters."""

import ctypes
import json
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.cli.config.settings import load
from featurewatch.stack.kafka.cluster import Cluster
from tests.deploy import confined
from tests.paths import ROOT
from tests.processes import Process, wait_ready

UNIT = ROOT / "deploy/systemd/featurewatch@.service"
MAX_EXPOSURE = 15
"""Ten times the number that ``systemd-analyze security`` prints: 1.5 of 10."""

PROCESSES = ("watch", "worker", "web", "notify")


@pytest.fixture
def analyze() -> str:
    """The program of systemd; skips the test where it is missing."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not here: install systemd")
    return program


@pytest.fixture
def unit(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """An instance of the unit with a program that is there."""
    file = tmp_path / f"featurewatch@{getattr(request, 'param', 'watch')}.service"
    file.write_text(UNIT.read_text().replace("/opt/featurewatch/bin/featurewatch", sys.executable))
    return file


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """What a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("unit", PROCESSES, indirect=True)
def test_systemd_accepts_the_unit(analyze: str, unit: Path) -> None:
    """`systemd-analyze verify` has nothing to remark."""
    done = run(analyze, "verify", "--man=no", unit)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_systemd_finds_a_typo(analyze: str, unit: Path) -> None:
    """The check would see a setting that does not exist."""
    unit.write_text(unit.read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    done = run(analyze, "verify", "--man=no", unit)
    assert "NoNewPrivilege" in done.stderr


def test_the_unit_is_hardened(analyze: str, unit: Path) -> None:
    """Its exposure is below 1.5, and would not be without a line of it."""
    command = (analyze, "security", "--offline=true", "--no-pager")
    limit = f"--threshold={MAX_EXPOSURE}"
    done = run(*command, limit, unit)
    assert done.returncode == 0, done.stdout
    unit.write_text(unit.read_text().replace("CapabilityBoundingSet=\n", ""))
    assert run(*command, limit, unit).returncode != 0


def environment(variables: str) -> Iterator[tuple[str, str]]:
    """The variables of the unit for one instance, with systemd's directories."""
    for name, value in confined.settings(UNIT):
        if name == "Environment":
            for variable in value.split():
                key, _, text = variable.partition("=")
                yield key, text.replace("%d", variables).replace("%S", "/var/lib")


def test_the_product_accepts_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credential is the configuration file, and the state directory the worker's."""
    (tmp_path / "featurewatch.yaml").write_text("bus: {bootstrap_servers: 'kafka:9092'}\n")
    given = dict(environment(str(tmp_path)))
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = load(None)
    assert settings.bus.bootstrap_servers == "kafka:9092"
    directories = dict(confined.settings(UNIT))
    assert str(settings.worker.data_directory) == f"/var/lib/{directories['StateDirectory']}"
    assert directories["LoadCredential"].startswith("featurewatch.yaml:/etc/featurewatch/")


@pytest.fixture
def confine(analyze: str) -> tuple[str, ...]:
    """The command that runs another under the filters of the unit; skips where it cannot."""
    try:
        ctypes.CDLL(confined.LIBRARY)
    except OSError:
        pytest.skip(f"{confined.LIBRARY} is not here: install libseccomp2")
    return (sys.executable, str(Path(confined.__file__)), str(UNIT))


REFUSED = """
import mmap, os, socket
def refuses(call):
    try:
        call()
    except PermissionError:
        return True
    return False
writable, executable = mmap.PROT_WRITE, mmap.PROT_EXEC
print(refuses(lambda: mmap.mmap(-1, 4096, prot=writable | executable)))
print(refuses(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)))
print(refuses(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5)))
print(refuses(lambda: mmap.mmap(-1, 4096, prot=writable)))
print(refuses(lambda: socket.socket(socket.AF_INET)))
"""


def test_the_filters_refuse_what_the_unit_does_not_allow(confine: tuple[str, ...]) -> None:
    """Memory to write and execute, other families of sockets, priorities; and nothing else."""
    done = run(*confine, sys.executable, "-c", REFUSED)
    assert done.stdout.split() == ["True", "True", "True", "False", "False"], done.stderr


def test_the_command_runs_under_the_filters(confine: tuple[str, ...]) -> None:
    """With the libraries that are not Python alone."""
    modules = "confluent_kafka, cryptography.x509, kazoo.client, orjson, crc32c"
    done = run(*confine, sys.executable, "-c", f"import {modules}; print('imported')")
    assert done.stdout == "imported\n", done.stderr
    done = run(*confine, sys.executable, "-m", "featurewatch", "--version")
    assert done.stdout.startswith("featurewatch "), done.stderr


@pytest.fixture
def read_only(tmp_path: Path) -> tuple[str, ...]:
    """The command that runs another where only the test's directory can be written.

    It is empty without the rights for that, or where temporary files have a file system of their
    own: the test then shows less.
    """
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro / && shift && exec "$@"'
    command = ("unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path))
    if shutil.which("unshare") is None:
        return ()
    codes = [
        run(*command, "touch", directory / "file").returncode
        for directory in (tmp_path, tmp_path.parent)
    ]
    return command if codes[0] == 0 and codes[1] != 0 else ()


@pytest.mark.stack
def test_processes_work_under_the_filters(
    read_only: tuple[str, ...], confine: tuple[str, ...], bus: Cluster, tmp_path: Path
) -> None:
    """Sources, a worker and the page on real Kafka become ready, and live until their end.

    They can write to their own directories only, as in a container or under the unit.
    """
    (tmp_path / "tmp").mkdir()
    clusters = [{"controllers": bus.controllers, "servers": bus.bootstrap_servers}]
    environment = {
        "FEATUREWATCH_BUS__BOOTSTRAP_SERVERS": bus.bootstrap_servers,
        "FEATUREWATCH_BUS__PREFIX": f"confined-{uuid.uuid4().hex[:8]}",
        "FEATUREWATCH_BUS__PARTITIONS": "2",
        "FEATUREWATCH_BUS__REPLICATION_FACTOR": "1",
        "FEATUREWATCH_CLUSTERS": json.dumps(clusters),
        "TMPDIR": str(tmp_path / "tmp"),
        "HOME": str(tmp_path / "tmp"),
    }
    wrapper = (*read_only, *confine)
    processes = [
        Process(name, [name], tmp_path, environment, wrapper) for name in ("worker", "watch", "web")
    ]
    try:
        for process in processes:
            process.start()
        wait_ready(processes)
        for process in processes:
            assert process.ended is None, process.log.read_text()
    finally:
        for process in processes:
            process.kill()
