"""The check of phrases that documents and code avoid."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.check_words import PHRASES, findings
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("line", "phrases"),
    [
        ("The topic is made anew.", ["anew"]),
        ("def test_a_source_goes_on_when_it_shall() -> None:", ["goes on", "shall"]),
        ("if source is None: goes_on(); goes-on", []),
        ("It waits for so long, of its own accord and of its own.", ["for so long", "of its own"]),
        ("A header that is none of these, or is none.", ["is none"]),
        ("The replica goes online, and the source went on.", ["went on"]),
        ("`docs/anew.md` and featurewatch.anew", []),
    ],
)
def test_phrases_are_found_in_words_and_in_names_of_tests(line: str, phrases: list[str]) -> None:
    """Not in names of other code, nor in the middle of words."""
    found = list(findings(Path("a.md"), f"Good.\n{line}\n"))
    assert sorted(finding.phrase for finding in found) == sorted(phrases)
    assert all(finding.line == 2 for finding in found)


def test_each_phrase_says_what_to_write_instead() -> None:
    """A finding names its place and a better phrase."""
    assert all(phrase.instead for phrase in PHRASES)


def test_a_file_with_such_a_phrase_fails_the_check(tmp_path: Path) -> None:
    """With exit code 3 and a line for each finding; a good file with 0 and no line."""
    for text, code in (("It begins anew.\n", 3), ("It restarts.\n", 0)):
        path = tmp_path / "a.md"
        path.write_text(text)
        run = subprocess.run(
            [sys.executable, "-m", "scripts.check_words", str(path)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (run.returncode, bool(run.stdout)) == (code, code == 3), run.stderr
