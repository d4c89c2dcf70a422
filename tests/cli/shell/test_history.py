"""The history of shells: private, bounded, and without what may be a secret."""

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.cli.commands.shell.history_file import (
    MAX_BYTES,
    MAX_LINES,
    HistoryFile,
    default_path,
    is_stored,
)


def test_lines_come_back_in_order(tmp_path: Path) -> None:
    """Of several shells, which append to one file; only its owner may read it."""
    path = tmp_path / "featurewatch" / "history"
    before = os.umask(0)
    try:
        for line in ("topics list", "features describe"):
            HistoryFile(path).append(line)
    finally:
        os.umask(before)
    assert HistoryFile(path).read() == ["topics list", "features describe"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_may_read_becomes_private(tmp_path: Path) -> None:
    """Before it is read."""
    path = tmp_path / "history"
    path.write_text("topics list\n")
    path.chmod(0o644)
    assert HistoryFile(path).read() == ["topics list"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Nothing is written where a link leads."""
    path = tmp_path / "history"
    path.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic"):
        HistoryFile(path).append("topics list")
    assert not (tmp_path / "other").exists()


def test_no_file_is_no_history(tmp_path: Path) -> None:
    """The first shell has none."""
    assert HistoryFile(tmp_path / "none").read() == []


@pytest.mark.parametrize(
    "line",
    [
        "topics alter --topic a --add-config sasl.jaas.config=x",
        "topics list --PASSWORD hunter2",
        "topics list # secret",
        " topics list",
        "",
        "x" * 1_000_000,
    ],
    ids=lambda line: line[:30],
)
def test_what_may_be_a_secret_is_not_stored(line: str, tmp_path: Path) -> None:
    """Nor what begins with a space, as in other shells."""
    file = HistoryFile(tmp_path / "history")
    file.append(line)
    assert not file.path.exists()
    assert not is_stored(line)


def test_a_long_history_is_cut(tmp_path: Path) -> None:
    """The latest lines stay, whole."""
    file = HistoryFile(tmp_path / "history")
    file.path.write_text("".join(f"topics describe --topic t{n:08}\n" for n in range(80_000)))
    assert file.path.stat().st_size > MAX_BYTES
    lines = file.read()
    assert len(lines) == MAX_LINES
    assert lines[-1] == "topics describe --topic t00079999"
    assert file.path.stat().st_size <= MAX_BYTES
    assert all(len(line) == len(lines[0]) for line in file.path.read_text().splitlines())


@given(st.binary(max_size=200), st.text(max_size=30))
def test_any_content_of_the_file_is_lines(content: bytes, line: str) -> None:
    """Bytes that are not text, and lines with any content."""
    with tempfile.TemporaryDirectory() as directory:
        file = HistoryFile(Path(directory) / "history")
        file.path.write_bytes(content)
        before = file.read()
        assert all("\n" not in text for text in before)
        file.append(line)
        if content.endswith(b"\n"):
            assert len(file.read()) == len(before) + is_stored(line)


def test_the_path_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    """``XDG_STATE_HOME``, or its default."""
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_path() == Path("/state/featurewatch/shell-history")
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", "/home/u")
    assert default_path() == Path("/home/u/.local/state/featurewatch/shell-history")
