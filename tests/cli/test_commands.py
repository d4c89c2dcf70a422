"""Commands without a bus: help, wrong usage, and what each says of it."""

import os
import re
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.cli.command_line import LazyGroup
from featurewatch.cli.main import main
from tests.admin.scripted import Node, ScriptedCluster
from tests.cli.command_tree import commands
from tests.cli.commands import featurewatch
from tests.paths import ROOT

RUNNER = CliRunner()
COMMANDS = dict(commands())
HELPS: list[tuple[str, ...]] = [(), *COMMANDS]
BUS_READERS = {"up", "watch", "worker", "state", "changes", "operations", "alerts", "epochs"}


def helped(path: tuple[str, ...]) -> str:
    """The help of a command at 80 columns, without colour."""
    plain = {"COLUMNS": "80", "NO_COLOR": "1"}
    result = RUNNER.invoke(app, [*path, "--help"], env=plain, prog_name="featurewatch")
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("path", HELPS, ids=" ".join)
def test_help_is_whole_at_80_columns(path: tuple[str, ...]) -> None:
    """Every option's whole name, default and meaning; no line too long, nothing cut off."""
    output = helped(path)
    text = " ".join(output.split())
    assert "…" not in output
    assert not re.search(r"<\w+|RANGE", output), "the name of a type, not of a quantity"
    assert max(map(len, output.splitlines())) <= 80
    command = COMMANDS.get(path, app)
    assert command.help
    for parameter in command.params:
        meaning = getattr(parameter, "help", "")
        assert meaning, f"{path} {parameter.name} has no help"
        assert " ".join(meaning.split()) in text
        if isinstance(parameter, click.Argument):
            continue
        assert isinstance(parameter, click.Option)
        for name in (*parameter.opts, *parameter.secondary_opts):
            assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", output), name
        default = parameter.show_default
        if default is True:
            default = str(parameter.default)
            if parameter.secondary_opts:
                used = parameter.opts if parameter.default else parameter.secondary_opts
                default = used[0].removeprefix("--")
        if default:
            assert re.search(rf"\[(env var: \w+; )?default: {re.escape(str(default))}[;\]]", text)


@pytest.mark.parametrize("path", list(COMMANDS), ids=" ".join)
def test_defaults_that_a_command_has_are_shown(path: tuple[str, ...]) -> None:
    """A default other than none is never silent."""
    for parameter in COMMANDS[path].params:
        if isinstance(parameter, click.Option) and parameter.default not in (None, "", False, ()):
            assert parameter.show_default


def test_summaries_begin_the_help_of_their_commands() -> None:
    """A group knows what its commands do without importing them, and says the same."""
    groups = [app, *(item for item in COMMANDS.values() if isinstance(item, LazyGroup))]
    for group in groups:
        for name, summary in group.summaries.items():
            command = group.get_command(click.Context(group), name)
            assert command is not None
            assert " ".join((command.help or "").partition("\n\n")[0].split()) == summary


def test_help_imports_no_command() -> None:
    """Nor any of the packages that take long."""
    heavy = "typer rich pydantic asyncio ssl kio confluent_kafka faust featurewatch.cli.commands"
    code = (
        "import sys; sys.argv = ['featurewatch', '--help']\n"
        "from featurewatch.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(*(name for name in {heavy.split()} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "\n"


def test_describe_imports_no_engine() -> None:
    """One request to one node: no generated codec, no settings, no table."""
    heavy = "typer rich pydantic kio confluent_kafka faust"
    code = (
        "import sys\n"
        "from featurewatch.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(*(name for name in {heavy.split()} if name in sys.modules), file=sys.stderr)"
    )
    with ScriptedCluster(Node()) as cluster:
        for arguments in (
            ["features", "--bootstrap-server", str(cluster.address()), "describe"],
            ["features", "describe", f"--bootstrap-server={cluster.address()}", "--json"],
            ["features", "describe", "--controller", "--bootstrap-server", str(cluster.address())],
        ):
            done = subprocess.run(
                [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
            )
            assert "metadata.version" in done.stdout
            assert done.stderr == "\n"


def test_readers_of_topics_import_no_engine(tmp_path: Path) -> None:
    """What reads a topic loads nothing that it does not use; settings only where there are some."""
    file = tmp_path / "featurewatch.yaml"
    file.write_text("bus: {bootstrap_servers: 'bus:9092'}")
    heavy = "pydantic aiohttp kazoo kio faust deltalake pyspark"
    code = (
        "import sys; from pathlib import Path\n"
        "from featurewatch.cli.commands import outputs\n"
        "from featurewatch.cli.config.bus import load_bus\n"
        "outputs._printers()\n"
        "assert load_bus(None, 'bus:9092', '').bootstrap_servers == 'bus:9092'\n"
        f"print(*(name for name in {heavy.split()} if name in sys.modules))\n"
        "assert load_bus(Path(sys.argv[1]), '', '').bootstrap_servers == 'bus:9092'\n"
        f"print(*(name for name in {heavy.split()} if name in sys.modules))"
    )
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "\npydantic\n"


@pytest.mark.parametrize("command", ["readiness", "rehearse", "history show", "fleet readiness"])
def test_help_fills_the_terminal(command: str) -> None:
    """A line ends where the next word would not fit, not where it ends in the source."""
    text = helped(tuple(command.split())).partition("\n\n")[2].partition("Options:")[0]
    lines = [line.strip() for line in text.splitlines()]
    pairs = [(flag, after.split()[0]) for flag, after in pairwise(lines) if flag and after]
    assert pairs
    assert all(len(f"  {flag} {word}") > 78 for flag, word in pairs), text


def test_settings_flags_are_everywhere() -> None:
    """Every command that uses the bus takes --config, --bus and --prefix."""
    for name in BUS_READERS:
        flags = {flag for parameter in COMMANDS[name,].params for flag in parameter.opts}
        assert {"--config", "--bus", "--prefix"} <= flags, name


def test_without_a_command_the_help_is_shown() -> None:
    """No arguments: the list of commands, and wrong usage."""
    result = RUNNER.invoke(app, [])
    assert result.exit_code == 2
    assert all(name in result.output for name in app.summaries)


WRONG = (
    (["state", "--nonsense"], "No such option"),
    (["nonsense"], "No such command"),
    (["state"], "pass --bus"),
    (["state", "--bus", "nonsense"], "write host:port"),
    (["changes", "--config", "missing.yaml"], "missing.yaml cannot be read"),
    (["up"], "there is no cluster to watch"),
    (["up", "--controllers", "a"], "clusters.0.controllers"),
    (["up", "--servers", "a:70000"], "clusters.0.servers"),
    (["up", "--log-directory", "missing"], "there is no directory missing"),
    (["up", "--log-directory", "."], "pass --cluster-id"),
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
    (["stack", "up", "--reference-topics"], "give both"),
    (["stack", "up", "--reference-brokers", "3", "--reference-topics"], "needs more than 3"),
    (["stack", "up", "--controlled-brokers", "0"], "--controlled-brokers"),
    (["stack", "up", "--controlled-brokers", "1", "--zookeeper-kafka", "1"], "give only one"),
    (["stack", "up", "--operations-dialect", "document"], "give one"),
    (["stack", "up", "--reference-controllers", "0"], "--reference-controllers"),
    (["stack", "up", "--mixed-controllers", "2"], "as in 1:2"),
    (["stack", "up", "--mixed-controllers", "0:3"], "as in 1:2"),
    (
        ["stack", "up", "--mixed-controllers", "1:2", "--reference-controllers", "3"],
        "not both",
    ),
    (["stack", "up", "--zookeeper", "1", "--reference-controllers", "3"], "for KRaft nodes"),
    (["stack", "up", "--zookeeper", "1", "--dynamic-voters"], "for KRaft nodes"),
    (["stack", "up", "--releases", "3.8.1", "--dynamic-voters"], "need Kafka 3.9 or newer"),
    (["stack", "up", "--controlled-brokers", "3", "--operations-dialect", "x"], "'document'"),
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
    for name in [variable for variable in os.environ if variable.startswith("FEATUREWATCH_")]:
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


def test_an_unreachable_bus_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    """Nobody listens: a single line has the address and the reason."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = featurewatch(tmp_path, "alerts", "--check", "--json", "--bus", address)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert f"the bus at {address} does not answer" in result.stderr
    assert "refused" in result.stderr


@pytest.mark.form("document")
def test_the_operations_of_kip_4_are_commands() -> None:
    """Topics, reassignments and preferred elections; the README says how the program is installed
    (A-42)."""
    operations = {
        "topics": {"create", "alter", "delete", "describe", "list"},
        "reassign": {"execute", "verify"},
        "elect": {"preferred"},
    }
    for group, names in operations.items():
        assert {path[1] for path in COMMANDS if path[0] == group and len(path) == 2} >= names
    readme = (ROOT / "README.md").read_text()
    assert "pipx install" in readme
    index = (ROOT / "docs" / "README.md").read_text()
    for page in ("topics.md", "admin.md"):
        assert f"/{page})" in index
