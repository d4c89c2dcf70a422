"""The deepest checks of what a document shows and no test runs."""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import click
import yaml
from click.exceptions import Exit, MissingParameter, NoArgsIsHelpError

from featurewatch.cli.app import app
from tests.paths import PACKAGE, ROOT

Check = Callable[[str], None]
"""Takes a command line, or the text of a block; fails if it is wrong."""


def parsed(line: str) -> None:
    """A line of featurewatch has a command and options that exist."""
    words = shlex.split(line, comments=True)[1:]
    end = next((i for i, word in enumerate(words) if word in (">", "&&", ";", "<", "&")), None)
    # A mention may leave out what does not matter there, and then the help or an error is shown.
    with suppress(MissingParameter, NoArgsIsHelpError, Exit):
        _parse(app, "featurewatch", words[:end])


def _parse(
    command: click.Command, name: str, arguments: list[str], above: click.Context | None = None
) -> None:
    """Parses arguments as the command does; raises `click.ClickException` if it refuses them."""
    context = command.make_context(name, arguments, parent=above)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if rest:
            found, child, below = command.resolve_command(context, rest)
            assert child is not None and found is not None
            _parse(child, found, below, context)


def made(line: str) -> None:
    """Make knows the target, and would run something for it."""
    words = shlex.split(line, comments=True)
    done = subprocess.run(
        [words[0], "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def files(line: str) -> None:
    """Each file of the repository that the line names is there."""
    named = re.findall(r"(?<![\w/.])(?:deploy|tests)/[\w./@-]+|constraints\.txt", line)
    missing = [name for name in named if not (ROOT / name.rstrip("/")).exists()]
    assert named and not missing, (line, missing)


def extras(line: str) -> None:
    """Each extra that is installed is declared, and the line has no other word of pip's."""
    named = re.findall(r"\[([\w,]+)\]", line)
    text = (ROOT / "pyproject.toml").read_text()
    declared = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    known = set(re.findall(r"^(\w+) = \[", declared, re.MULTILINE))
    assert named and {extra for part in named for extra in part.split(",")} <= known, line


def tested_by(test: str, *others: Check) -> Check:
    """A test, as ``FILE::NAME``, does what the line does in a way that is possible here."""

    def check(line: str) -> None:
        file, _, name = test.partition("::")
        assert re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), (
            test
        )
        for other in others:
            other(line)

    return check


def compose(line: str) -> None:
    """The file of ``docker compose`` is one."""
    words = shlex.split(line)
    file = ROOT / words[words.index("-f") + 1]
    assert "services" in yaml.safe_load(file.read_text())


def syntax(line: str) -> None:
    """A shell can read it."""
    subprocess.run(["bash", "-n", "-c", line], check=True)


def says_what_the_code_says(text: str) -> None:
    """Each line has a text of the product, or the words that are left when its values are out.

    docs/reference/messages.md has all of these texts, and is generated.
    """
    unknown = [line for line in text.splitlines() if not any(_found(line))]
    assert unknown == []


def _found(line: str) -> Iterator[bool]:
    if not re.search(r"[A-Za-z]{3}", line) or line.strip() == "…":
        yield True
    yield from (bool(pattern.search(line)) for pattern in _patterns())


@cache
def _patterns() -> list[re.Pattern[str]]:
    text = (ROOT / "docs" / "reference" / "messages.md").read_text()
    texts = {line for line in re.findall(r"^- `(.+)`$", text, re.MULTILINE) if len(line) > 9}
    literal = (re.split(r"\{[^{}]*\}|%\(?\w+\)?s?|%[sd]", line) for line in texts)
    kept = (parts for parts in literal if max(map(len, parts)) > 7)
    return [re.compile(".+".join(map(re.escape, parts))) for parts in kept]


def dialog(text: str) -> None:
    """What is typed at a prompt is a command of the shell; other lines are the code's texts."""
    lines = [line.partition("> ") for line in text.splitlines()]
    says_what_the_code_says("\n".join(shown for shown, prompt, _ in lines if not prompt))
    for _, prompt, typed in lines:
        if prompt and typed != "exit":
            parsed(f"featurewatch {typed} --bootstrap-server kafka-1:9092")


def folders(text: str) -> None:
    """Each name at the beginning of a line is a file or folder: below the package if indented."""
    for line in text.splitlines():
        place = PACKAGE if line.startswith(" ") else ROOT
        for name in re.split(r" {2,}", line.strip())[0].split(", "):
            assert (place / name).exists(), line


def names(text: str) -> None:
    """Each name of a class or function in a drawing is one of the package."""
    wanted = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b|\b[a-z]+(?:_[a-z]+)+\b", text))
    code = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    missing = [
        name for name in wanted if not re.search(rf"^\s*(?:class|def) {name}\b", code, re.MULTILINE)
    ]
    assert wanted and missing == []


def faults(line: str) -> None:
    """The matrix of faults has the rows of the line, and its options."""
    words = [*shlex.split(line, comments=True)[1:], "--list"]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def kubectl(line: str) -> None:
    """Kubectl accepts the line, where it is on this machine and the files of the line are."""
    syntax(line)
    if program := shutil.which("kubectl"):
        with tempfile.TemporaryDirectory() as directory:
            for name in re.findall(r"--from-file=(\S+)", line):
                Path(directory, name).write_text("a: b\n")
            done = subprocess.run(
                ["bash", "-c", f"{line.replace('kubectl', program, 1)} --dry-run=client"],
                cwd=directory,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
