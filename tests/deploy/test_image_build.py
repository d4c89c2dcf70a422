"""The image, built of a base that Debian's tools make, and run as its user.

Needs root, ``mmdebstrap`` and ``buildah`` (packages of Debian), their mirror and the package
index. It takes minutes, and 3 GB in the temporary directory, so it is left to the night.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.releasing.checks import version_of
from tests.paths import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.network]

VERSION = version_of((ROOT / "pyproject.toml").read_text())
BASE = "localhost/base:test"
PACKAGES = "python3,python3-venv,ca-certificates"
HOST_FILES = ("/etc/pip.conf", "/etc/ssl/certs")
"""How this machine reaches the package index; neither is in the image."""

Run = Callable[..., str]


def output_of(*command: str | Path) -> str:
    """What a command prints on stdout."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def run_in_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a command in the image, as its user."""
    for tool in ("buildah", "mmdebstrap"):
        if shutil.which(tool) is None or os.geteuid() != 0:
            pytest.skip(f"{tool} is not here, or the tests do not run as root")
    directory = tmp_path_factory.mktemp("image")
    storage = ("--root", directory / "storage", "--runroot", directory / "run")

    def buildah(*arguments: str | Path) -> str:
        return output_of("buildah", *storage, "--storage-driver", "vfs", *arguments).strip()

    try:
        system = directory / "base.tar"
        output_of("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", system)
        base = buildah("from", "scratch")
        buildah("add", base, system, "/")
        buildah("commit", "--rm", base, BASE)
        mounts = [f"--volume={file}:{file}:ro" for file in HOST_FILES if Path(file).exists()]
        options = ("--isolation=chroot", "--pull-never", f"--build-arg=BASE={BASE}", *mounts)
        buildah("bud", *options, "--file=deploy/image/Containerfile", "--tag=localhost/image", ".")
        container = buildah("from", "--pull-never", "localhost/image")

        def run(*arguments: str) -> str:
            return buildah("run", "--isolation=chroot", container, "--", *arguments)

        yield run
    finally:
        shutil.rmtree(directory)


def test_the_image_runs_featurewatch(run_in_image: Run) -> None:
    """Its commands, by the name on the PATH that `kubectl exec` uses."""
    assert run_in_image("featurewatch", "--version") == f"featurewatch {VERSION}"
    for process in ("watch", "worker", "web", "notify"):
        assert f"featurewatch {process}" in run_in_image("featurewatch", process, "--help")


def test_the_image_has_no_rights_on_its_files(run_in_image: Run) -> None:
    """It runs as 65532, may write its state and nothing else, and holds no installer."""
    program = (
        "import importlib.util, os; print(os.getuid(), os.getgid(), *[os.access(path, os.W_OK) "
        "for path in ('/', '/opt/featurewatch', '/var/lib/featurewatch')], "
        "importlib.util.find_spec('pip'))"
    )
    printed = run_in_image("/opt/featurewatch/bin/python", "-c", program)
    assert printed == "65532 65532 False False True None"


def test_the_image_has_what_every_process_needs(run_in_image: Run) -> None:
    """The modules of all processes can be imported, and the on-disk store."""
    modules = "featurewatch.cli.runtime.services, featurewatch.cli.runtime.notify.run, rocksdict"
    program = f"import {modules}; print('imported')"
    assert run_in_image("/opt/featurewatch/bin/python", "-c", program) == "imported"
