"""Commands without a bus: help, wrong usage, and what each says of it."""

import os
import socket
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from featurewatch.cli.main import app, main
from tests.cli.commands import featurewatch

RUNNER = CliRunner()
GROUP = get_command(app)
assert hasattr(GROUP, "commands")
COMMANDS = sorted(GROUP.commands)
OPTIONAL = {"up", "watch", "worker", "state", "changes", "alerts", "epochs"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    """--help ends with 0 and describes the command and each of its options."""
    result = RUNNER.invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 0
    found = GROUP.commands[command]  # type: ignore[attr-defined]  # it is a group
    assert found.help or found.name == "stack"
    for parameter in found.params:
        assert parameter.help, f"{command} {parameter.name} has no help"
        name = parameter.metavar if parameter.param_type_name == "argument" else parameter.opts[0]
        assert name in result.output


@pytest.mark.parametrize("command", ["readiness", "rehearse", "history show", "fleet readiness"])
def test_help_fills_the_terminal(command: str) -> None:
    """A line ends where the next word would not fit, not where it ends in the source."""
    result = RUNNER.invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"})
    text = result.output.partition(" Usage:")[2].partition("╭")[0]
    lines = [line.strip() for line in text.splitlines()]
    pairs = [(one, after.split()[0]) for one, after in pairwise(lines) if one and after]
    assert pairs
    assert all(len(f"{one} {word}") > 78 for one, word in pairs), text


def test_settings_flags_are_everywhere() -> None:
    """Every command that uses the bus takes --config, --bus and --prefix."""
    for name in OPTIONAL:
        flags = {flag for param in GROUP.commands[name].params for flag in param.opts}  # type: ignore[attr-defined]
        assert {"--config", "--bus", "--prefix"} <= flags, name


def test_without_a_command_the_help_is_shown() -> None:
    """No arguments: the list of commands, and wrong usage."""
    result = RUNNER.invoke(app, [])
    assert result.exit_code == 2
    assert all(name in result.output for name in COMMANDS)


WRONG = (
    (["state", "--nonsense"], "No such option"),
    (["nonsense"], "No such command"),
    (["state"], "give --bus"),
    (["state", "--bus", "nonsense"], "write host:port"),
    (["changes", "--config", "missing.yaml"], "missing.yaml cannot be read"),
    (["up"], "there is no cluster to watch"),
    (["up", "--controllers", "a"], "clusters.0.controllers"),
    (["up", "--servers", "a:70000"], "clusters.0.servers"),
    (["up", "--log-directory", "missing"], "there is no directory missing"),
    (["up", "--log-directory", "."], "give --cluster-id"),
    (["watch", "--controllers", "a:1", "--command-config", "none"], "none cannot be read"),
    (["up", "--zookeeper", "a:70000"], "clusters.0.zookeeper"),
    (["up", "--zookeeper", "a:1,b:port/kafka"], "'b:port' has no port"),
    (["up", "--zookeeper", "a:1/kafka,b:1"], "a server after the chroot"),
    (["watch", "--zookeeper", "/kafka"], "names no ZooKeeper server"),
    (["watch", "--zookeeper", "a:1", "--zookeeper-config", "none"], "none cannot be read"),
    (["watch", "--zookeeper-config", "none"], "neither controllers nor servers"),
    (["stack", "up", "--zookeeper", "2"], "an ensemble has 1, 3, 5"),
    (["stack", "up", "--zookeeper-kafka", "0"], "--zookeeper-kafka"),
    (["stack", "up", "--reference-brokers", "0"], "--reference-brokers"),
    (["stack", "up", "--reference-features", "f=1-2"], "give both"),
    (["worker", "--store", "paper"], "worker.store"),
)


@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=str)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing on stdout, no traceback, and what to do instead."""
    monkeypatch.chdir(tmp_path)
    for name in [each for each in os.environ if each.startswith("FEATUREWATCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("featurewatch.cli.logs.set_up", lambda **_: None)
    monkeypatch.setattr("sys.argv", ["featurewatch", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert says in err
    if err.startswith("featurewatch:"):
        assert err.count("\n") == 1


def test_a_bus_that_is_not_there_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    """Nobody listens: the address and the reason stand in the only line there is."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = featurewatch(tmp_path, "alerts", "--check", "--json", "--bus", address)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert f"the bus at {address} does not answer" in result.stderr
    assert "refused" in result.stderr


def test_typer_is_told_what_no_terminal_shows() -> None:
    """The app leaves exceptions to us, so that no traceback with settings in it is printed."""
    assert isinstance(app, typer.Typer)
    assert app.pretty_exceptions_enable is False
