"""Progress on stderr: a bar on a terminal, lines elsewhere."""

import io
import re
import sys

import pytest

from featurewatch.cli.output.progress import shown_progress


class Screen(io.StringIO):
    """A terminal's stderr."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def follow() -> None:
    """A step of a hundred bytes, sixty of which are done."""
    with shown_progress() as progress:
        progress.begin("reassignment", 100, "bytes")
        progress.advance(60)


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the share that is done, the bytes that are left, and an estimate."""
    screen = Screen()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", screen)
    follow()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert " 60%" in shown
    assert re.search(r"40 bytes left, about \d+ s", shown)
    assert "featurewatch: " not in shown


def test_elsewhere_there_are_no_controls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log has a line now and then, and no bar; a short step has none."""
    follow()
    assert capsys.readouterr().err == ""
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr("featurewatch.cli.output.progress.time.monotonic", lambda: next(clock))
    follow()
    shown = capsys.readouterr().err
    assert "reassignment: 60 bytes done, 40 left, about" in shown
    assert "\x1b" not in shown
