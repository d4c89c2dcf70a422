"""When make installs again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT


def test_only_what_an_installation_takes_makes_an_environment_stale(tmp_path: Path) -> None:
    """Settings of tools and comments do not; dependencies and packages do."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    project, stamp = tmp_path / "pyproject.toml", tmp_path / ".venv" / "ready"
    written = project.read_text()

    def make(*arguments: str) -> int:
        # Without what a make that runs this test has set, and without the time of a shim of Python.
        environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        command = ["make", "PYTHONS=python3", *arguments]
        return subprocess.run(
            command, check=False, cwd=tmp_path, env=environment, timeout=60
        ).returncode

    def is_stale(text: str) -> bool:
        assert text != written
        project.write_text(text)
        assert make(".cache/installed.toml") == 0
        return make("--question", "--old-file", "pyproject.toml", ".venv/ready") == 1

    assert make(".cache/installed.toml") == 0
    stamp.parent.mkdir()
    stamp.touch()
    assert not is_stale(written.replace("line-length = 100", "line-length = 99"))
    assert not is_stale(f"{written}# A comment.\n")
    for old, new in (('"orjson>=3.10"', '"orjson>=3.11"'), ('where = ["src"]', 'where = ["lib"]')):
        assert is_stale(written.replace(old, new))
        stamp.touch()
