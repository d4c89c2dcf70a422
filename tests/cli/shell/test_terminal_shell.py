"""The shell at a terminal: keys in, and what a person sees."""

import stat
import threading
from pathlib import Path

import pytest

from featurewatch.cli.commands.shell.interactive import require_terminal
from featurewatch.cli.errors import UsageError
from featurewatch.reference.zookeeper.machines.requests import UpdateResponse
from tests.admin.scripted import Node, ScriptedCluster
from tests.cli.shell.terminals import shell_terminal

pytest.importorskip("prompt_toolkit", reason="install the extra shell")

HISTORY = Path("featurewatch") / "shell-history"
CTRL_C, CTRL_D, TAB, UP = "\x03", "\x04", "\t", "\x1b[A"


def test_a_failed_command_does_not_end_the_shell(tmp_path: Path) -> None:
    """The prompt has its exit code; the next good one clears it; Ctrl-D ends with 0."""
    with ScriptedCluster(Node()) as cluster:
        address = str(cluster.address())
        with shell_terminal(tmp_path, "--bootstrap-server", address) as terminal:
            terminal.prompts(f"{address}>")
            terminal.enter("nonsense")
            terminal.shows("there is no command nonsense")
            terminal.prompts(f"{address} [2]>")
            terminal.enter("features describe")
            terminal.shows("Feature: metadata.version")
            terminal.prompts(f"{address}>")
            terminal.type(CTRL_D)
            assert terminal.ends() == 0
            assert "Traceback" not in terminal.text


def test_tab_completes_and_the_history_stays(tmp_path: Path) -> None:
    """Commands, options and the cluster's features; the next shell has the lines."""
    with ScriptedCluster(Node()) as cluster:
        address = str(cluster.address())
        with shell_terminal(tmp_path, "--bootstrap-server", address) as terminal:
            terminal.prompts(f"{address}>")
            terminal.type(f"fea{TAB}")
            terminal.shows("tures")
            terminal.type(f" des{TAB}")
            terminal.shows("cribe")
            terminal.enter("")
            terminal.shows("Feature: metadata.version")
            terminal.prompts(f"{address}>")
            terminal.enter("topics alter --topic a --add-config sasl.jaas.config=x --nonsense")
            terminal.shows("No such option")
            terminal.prompts(f"{address} [2]>")
            terminal.enter("exit")
            assert terminal.ends() == 0
        history = tmp_path / HISTORY
        assert history.read_text().splitlines()[0].split() == ["features", "describe"]
        assert "jaas" not in history.read_text()
        assert stat.S_IMODE(history.stat().st_mode) == 0o600
        with shell_terminal(tmp_path, "--bootstrap-server", address) as terminal:
            terminal.prompts(f"{address}>")
            terminal.type(f"feat{UP}")
            terminal.shows("ures describe")
            terminal.enter("")
            terminal.shows("Feature: metadata.version")


def test_a_change_asks_at_the_terminal(tmp_path: Path) -> None:
    """As on the command line: Ctrl-C at the question sends nothing, and the shell continues."""
    node = Node()
    with ScriptedCluster(node) as cluster:
        address = str(cluster.address())
        with shell_terminal(tmp_path, "--bootstrap-server", address) as terminal:
            terminal.prompts(f"{address}>")
            terminal.enter("features downgrade --feature metadata.version=19")
            terminal.shows("[y/N]")
            terminal.type(CTRL_C)
            terminal.shows("nothing was sent")
            terminal.prompts(f"{address} [130]>")
            assert node.updates == []
            terminal.enter("features describe")
            terminal.shows("Feature: metadata.version")


def test_a_change_that_is_not_answered_has_an_unknown_outcome(tmp_path: Path) -> None:
    """The same line and code as on the command line; Ctrl-C at the prompt empties the line."""
    sent: list[object] = []

    def closes(call: object) -> UpdateResponse | None:
        sent.append(call)
        return None

    with ScriptedCluster(Node(script=closes)) as cluster:
        address = str(cluster.address())
        with shell_terminal(tmp_path, "--bootstrap-server", address) as terminal:
            terminal.prompts(f"{address}>")
            terminal.enter("features upgrade --feature metadata.version=21 --yes")
            terminal.shows("see what is finalized now: featurewatch features describe")
            terminal.prompts(f"{address} [4]>")
            assert len(sent) == 1
            terminal.type(f"half a line{CTRL_C}")
            terminal.prompts(f"{address} [130]>")
            terminal.enter("features describe")
            terminal.shows("Feature: metadata.version")


def test_ctrl_c_ends_the_running_command_alone(tmp_path: Path) -> None:
    """A change that was sent: the line names the command that shows what there is."""
    is_sent, is_over = threading.Event(), threading.Event()

    def waits(_call: object) -> UpdateResponse | None:
        is_sent.set()
        is_over.wait(120)
        return None

    with ScriptedCluster(Node(script=waits)) as cluster:
        address = str(cluster.address())
        with shell_terminal(tmp_path, "--bootstrap-server", address) as terminal:
            terminal.prompts(f"{address}>")
            terminal.enter("features upgrade --feature metadata.version=21 --yes")
            assert is_sent.wait(120)
            terminal.type(CTRL_C)
            terminal.shows("interrupted; check whether anything was changed: featurewatch features")
            terminal.prompts(f"{address} [130]>")
            is_over.set()
            terminal.enter("features describe")
            terminal.shows("Feature: metadata.version")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("features upgrade --feature metadata.version=21 --yes", "upgrade"),
        ("features downgrade --feature metadata.version=19", "[y/N]"),
    ],
    ids=["request", "question"],
)
def test_sigterm_ends_the_shell_while_a_command_runs(tmp_path: Path, line: str, shown: str) -> None:
    """Whether the command ends in order at the signal or is ended by it."""
    is_sent, is_over = threading.Event(), threading.Event()

    def waits(call: object) -> UpdateResponse | None:
        if not getattr(call, "validate_only", False):
            is_sent.set()
            is_over.wait(120)
        return None

    with ScriptedCluster(Node(script=waits)) as cluster:
        address = str(cluster.address())
        with shell_terminal(tmp_path, "--bootstrap-server", address) as terminal:
            terminal.prompts(f"{address}>")
            terminal.enter(line)
            terminal.shows(shown)
            assert "[y/N]" in shown or is_sent.wait(120)
            terminal.process.terminate()
            assert terminal.ends() == 143
            is_over.set()


def test_an_unreachable_cluster_gives_no_completion_and_no_traceback(
    tmp_path: Path, closed_port: int
) -> None:
    """Typing still works; ``help`` has the reason."""
    address = f"127.0.0.1:{closed_port}"
    with shell_terminal(tmp_path, "--bootstrap-server", address) as terminal:
        terminal.prompts(f"{address}>")
        terminal.type(f"features disable --feature m{TAB}")
        terminal.enter("etadata.version --dry-run")
        terminal.shows("nobody listens at")
        terminal.prompts(f"{address} [1]>")
        terminal.enter("help")
        terminal.shows("names are not completed: nobody listens at")
        terminal.prompts(f"{address}>")
        terminal.process.terminate()
        assert terminal.ends() == 143
        assert "Traceback" not in terminal.text


def test_a_history_that_cannot_be_stored_is_one_line(tmp_path: Path) -> None:
    """The shell runs without."""
    (tmp_path / "featurewatch").touch()
    with shell_terminal(tmp_path, "--bootstrap-server", "127.0.0.1:1") as terminal:
        terminal.prompts("127.0.0.1:1>")
        terminal.enter("help exit")
        terminal.shows("the history is not stored")
        terminal.shows("End the shell")
        terminal.prompts("127.0.0.1:1>")
        terminal.enter("exit")
        assert terminal.ends() == 0
        assert terminal.text.count("the history is not stored") == 1


def test_without_the_extra_one_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what runs without it."""
    monkeypatch.setattr("featurewatch.cli.commands.shell.interactive.find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=r"pip install 'featurewatch\[shell\]'.*-c LINE"):
        require_terminal()
