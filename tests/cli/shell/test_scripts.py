"""Lines of ``-c`` and of a script: the commands of the command line, on one connection."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from featurewatch.cli.commands.shell.line_runner import LineRunner
from featurewatch.cli.commands.shell.target import shell_target
from featurewatch.cli.commands.shell.words import MAX_LINE_CHARS
from tests.admin.scripted import Node, ScriptedCluster
from tests.cli.commands import featurewatch
from tests.cli.shell.shells import shell

DESCRIBE = "features describe"


def test_a_line_does_what_the_command_does(tmp_path: Path) -> None:
    """The same bytes on stdout and the same exit code, with the cluster filled in."""
    with ScriptedCluster(Node()) as cluster:
        server = ("--bootstrap-server", str(cluster.address()))
        for line in (
            DESCRIBE,
            "features --json describe",
            f"featurewatch features describe {' '.join(server)}",
            "features upgrade --feature metadata.version=21 --dry-run",
            "features disable --feature nonsense",
            "features describe --node-id -1",
        ):
            words = [word for word in line.split() if word not in ("featurewatch", *server)]
            alone = featurewatch(tmp_path, words[0], *server, *words[1:])
            within = shell(tmp_path, *server, "-c", line)
            assert (within.stdout, within.returncode) == (alone.stdout, alone.returncode), line
            assert alone.stdout or alone.stderr


def test_a_script_runs_on_one_connection(tmp_path: Path) -> None:
    """Comments and empty lines are no commands; a backslash continues one."""
    lines = f"# levels\n\n{DESCRIBE}\nfeatures \\\n  describe --json\nfeaturewatch {DESCRIBE}\n"
    with ScriptedCluster(Node()) as cluster:
        done = shell(tmp_path, "--bootstrap-server", str(cluster.address()), lines=lines)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("group.version") == 3
        assert cluster.connection_count == 1


@pytest.mark.parametrize(
    ("lines", "code", "printed", "error"),
    [
        (f"{DESCRIBE}\nnonsense\n{DESCRIBE}\n", 2, 1, "line 2 failed with exit code 2"),
        ("features describe --node-id -1\n", 1, 0, "line 1 failed with exit code 1"),
        (f"\n{DESCRIBE} \\\n --node-id x\n{DESCRIBE}", 2, 0, "line 2 failed with exit code 2"),
        (f"{DESCRIBE}\nexit\nnonsense\n", 0, 1, ""),
        ("x" * (3 * MAX_LINE_CHARS) + f"\n{DESCRIBE}\n", 2, 0, "line 1 failed"),
        (b"\xff\xfe\n", 2, 0, ""),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_script_ends_at_the_first_failure(
    tmp_path: Path, lines: str | bytes, code: int, printed: int, error: str
) -> None:
    """Its exit code is the script's, and stderr names the line; nothing is a traceback."""
    with ScriptedCluster(Node()) as cluster:
        done = shell(tmp_path, "--bootstrap-server", str(cluster.address()), lines=lines)
    assert done.returncode == code, done.stderr
    assert done.stdout.count("metadata.version") == printed
    assert error in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (f"{DESCRIBE} | sort", "runs one command a line and has no |"),
        ("up", "run `featurewatch up` outside it"),
        ("shell", "run `featurewatch shell` outside it"),
        ("help up", "run `featurewatch up` outside it"),
        ("topcs list", "did you mean topics?"),
        ("xyzzy", "there is no command xyzzy: features, topics,"),
        ("exit now", "exit takes no arguments"),
        ("features describe --bootstrap-server other:1", "start another shell"),
        ("features --bootstrap-server=other:1 describe", "start another shell"),
        ("features describe --bootstrap-server", "start another shell"),
        ("topics descrbe", "Did you mean 'describe'?"),
        ("topics describe --topci a", "No such option"),
        ("topics list '", "quotation mark"),
    ],
)
def test_a_line_that_is_no_command_is_refused(
    line: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong usage, with what to do instead, before anything is sent."""
    assert LineRunner(shell_target("a:1", None, None)).run(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert error in err


def test_several_lines_may_be_given(tmp_path: Path) -> None:
    """Options and lines of an option, in their order; stdin is left alone."""
    with ScriptedCluster(Node()) as cluster:
        server = ("--bootstrap-server", str(cluster.address()))
        done = shell(tmp_path, *server, "-c", f"{DESCRIBE}\n{DESCRIBE}", "-c", DESCRIBE, lines="up")
        assert (done.returncode, done.stdout.count("metadata.version")) == (0, 3)
        done = shell(tmp_path, *server, "-c", "nonsense", "-c", DESCRIBE)
    assert (done.returncode, done.stdout) == (2, "")
    assert "line 1 failed with exit code 2: nothing after it ran" in done.stderr


def test_through_controllers_only_some_commands_run(tmp_path: Path) -> None:
    """One that only brokers serve is refused before anything is sent."""
    done = shell(tmp_path, "--bootstrap-controller", "127.0.0.1:1", "-c", "topics list")
    assert (done.returncode, done.stdout) == (2, "")
    assert "topics list works through brokers: start a shell with --bootstrap-server" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "give one of --bootstrap-server and --bootstrap-controller"),
        (
            ("--bootstrap-server", "a:1", "--bootstrap-controller", "b:1"),
            "give one of --bootstrap-server and --bootstrap-controller",
        ),
        (("--bootstrap-server", "a"), "--bootstrap-server: "),
        (("--bootstrap-server", "a:1", "--command-config", "missing"), "missing cannot be read"),
    ],
)
def test_a_shell_without_a_cluster_does_not_start(
    tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    """Wrong options are one line before any line runs."""
    done = shell(tmp_path, *arguments, lines="help\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert error in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_lists_the_commands(tmp_path: Path) -> None:
    """And shows the help of one, as the command line has it."""
    done = shell(tmp_path, "--bootstrap-server", "127.0.0.1:1", lines="help\nhelp topics list\n")
    assert done.returncode == 0
    assert "reassign" in done.stdout
    assert "\n  up " not in done.stdout
    assert "Usage: topics list" in done.stdout


def test_scripts_need_no_extra(tmp_path: Path) -> None:
    """prompt_toolkit is imported only where somebody types."""
    code = (
        "import sys\n"
        "from featurewatch.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*(name for name in sys.modules if 'prompt_toolkit' in name), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "shell", "--bootstrap-server", "a:1", "-c", "help"],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "\n"


def test_a_defect_of_a_command_does_not_end_the_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its traceback is printed, and it counts as failed."""

    def broken(*_: object) -> int:
        raise RuntimeError("\x1b[2Jdefect")

    monkeypatch.setattr("featurewatch.cli.commands.shell.line_runner.run_command", broken)
    assert LineRunner(shell_target("a:1", None, None)).run("topics list") == 1
    errors = capsys.readouterr().err
    assert "RuntimeError: \N{REPLACEMENT CHARACTER}[2Jdefect" in errors
