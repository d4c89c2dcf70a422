"""Finds phrases that read badly in documents, messages, docstrings, comments and names of tests.

Usage: ``python -m scripts.check_words [--count] [FILE...]``, of all files that git knows if none is
given. Each phrase is a line on stdout with its place and what to write instead, and the exit code
is 3 if there is any. With ``--count`` only the number of each phrase is printed.

``docs/reference/messages.md`` has every text of the product, so texts need no check of their own.
Vale would be the usual choice: its Go module cannot be built from the proxy of modules, and its
package on PyPI fetches a program from elsewhere when it runs.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from scripts.generators import ROOT


class Phrase(NamedTuple):
    """A phrase to avoid, as a regular expression, and what to write instead."""

    pattern: str
    instead: str


PHRASES: Final = (
    Phrase(r"anew", "again, re-, recreated, or restarts"),
    Phrase(r"shall", "should, desired, expected, or up to date"),
    Phrase(r"(?:for|of|after|in) so (?:long|many|much)", "this long, this many, or at most N"),
    Phrase(r"(?<!there )(?:is|are|was|were|be) none(?! of)", "is not a valid …, or invalid …"),
    Phrase(
        r"(?<![Tt]here )(?<!it )(?:is|are) no"
        r"(?= (?:\w+ )?(?:file|text|number|id|level|list|name)\b)",
        "is not a …",
    ),
    Phrase(r"tells? \w+(?: \w+)? from", "distinguishes … from"),
    Phrase(r"(?<!one )(?:by|of) (?:itself|themselves)", "automatically, or on its own"),
    Phrase(r"of (?:its|their) own(?! \w)", "its own …"),
    Phrase(r"by that alone", "nothing: drop it"),
    Phrase(
        r"(?:is|are|was|were|be) (?:away|gone|back)",
        "unavailable, unreachable, removed, or recovered",
    ),
    Phrase(r"(?:as )?of now", "current"),
    Phrase(r"today's", "current"),
    Phrase(r"stands?(?! by| for| in for|alone| up)", "is"),
    Phrase(r"(?<!re)lies", "is"),
    Phrase(r"hangs? on", "depends on"),
    Phrase(r"(?:to|can|could|may|must) be had", "available"),
    Phrase(r"(?:go(?:es)? on|went on)", "continues"),
    Phrase(r"(?:a|no|any|the last|the first) word of", "a message from"),
)
_FIND: Final = [
    (re.compile(rf"(?<![\w./-]){phrase.pattern}(?![\w/-])"), phrase.instead) for phrase in PHRASES
]
_SELF: Final = Path(__file__).resolve()
_CHECKED: Final = (".md", ".py", ".js", ".html")
_SKIPPED: Final = (
    "src/featurewatch/web/static/vendor/",
    "tests/data/",
    "docs/reference/requirements.md",  # the specification's statements
    "tests/test_check_words.py",  # examples of each phrase
)


class Finding(NamedTuple):
    """A phrase in a file."""

    path: Path
    line: int
    phrase: str
    instead: str


def findings(path: Path, text: str) -> Iterator[Finding]:
    """Yields each phrase of a text that should be another one, in order."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in _FIND:
            for match in pattern.finditer(line.replace("_", " ") if _is_test(line) else line):
                yield Finding(path, number, match[0], instead)


def _is_test(line: str) -> bool:
    return line.lstrip().startswith(("def test_", "async def test_"))


def checked_files() -> list[Path]:
    """Returns every file of the repository with words of people."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [
        ROOT / name
        for name in listed.stdout.split("\0")
        if name.endswith(_CHECKED) and not name.startswith(_SKIPPED) and ROOT / name != _SELF
    ]


def main(arguments: list[str]) -> int:
    """Prints the phrases of the files; returns the exit code."""
    is_count = "--count" in arguments
    paths = [Path(name).resolve() for name in arguments if name != "--count"] or checked_files()
    found = [finding for path in paths for finding in findings(path, path.read_text())]
    if is_count:
        for phrase, count in Counter(finding.phrase.lower() for finding in found).most_common():
            print(f"{count:5} {phrase}")
    else:
        for path, line, phrase, instead in found:
            place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            print(f'{place}:{line}: "{phrase}": write {instead}')
    return 3 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
