"""What clusters send is shown on a terminal, and never obeyed by it."""

import ast
import json
import logging
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from featurewatch.cli.logs import PlainFormatter
from featurewatch.cli.main import main
from featurewatch.cli.output import terminal
from featurewatch.common.text import plain, shortened
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from tests.admin.scripted import Node, ScriptedCluster
from tests.conformance.kafka_tools import OurCommand
from tests.paths import PACKAGE

HOSTILE = "\x1b]0;owned\x07\x1b[2Jred\x9b31m\r\nfeaturewatch: all is well \u202e"
OBEYED = "\x1b\x07\x9b\r\u202e"
OWN_STREAMS = {
    "cli/output/terminal.py": "the one place",
    "cli/output/live_printer.py": "passes a closed stream on to nobody",
}
OWN_CLUSTERS = ("cli/commands/demo/", "cli/commands/stack/")
"""These commands show clusters that they have started themselves."""


def direct_writes(file: Path) -> list[int]:
    """The lines of a module that call `print` or write to a standard stream."""
    lines = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("print", "sys.stdout.write", "sys.stderr.write", "Console"):
                lines.append(node.lineno)
    return lines


def test_one_module_writes_to_the_terminal() -> None:
    """No command writes past it, so that none forgets what a terminal would obey."""
    found = {
        name: lines
        for file in sorted((PACKAGE / "cli").rglob("*.py"))
        if not (name := str(file.relative_to(PACKAGE))).startswith(OWN_CLUSTERS)
        and name not in OWN_STREAMS
        and (lines := direct_writes(file))
    }
    assert found == {}


def test_lines_are_one_line_each_and_plain(capsys: pytest.CaptureFixture[str]) -> None:
    """A text cannot colour, move, or begin a new line; tabs are columns and stay."""
    terminal.print_line(f"a\t{HOSTILE}")
    terminal.print_error(HOSTILE)
    terminal.print_note(HOSTILE)
    out, err = capsys.readouterr()
    assert out.startswith("a\t")
    assert out.count("\n") == 1
    assert err.count("\n") == 2
    assert not set(out + err) & set(OBEYED)


def test_a_document_keeps_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    """Inside JSON the same characters are escaped, also those beyond the basic plane."""
    value = {"name": HOSTILE + "\U000e0001é"}
    terminal.print_json_text(json.dumps(value, indent=4, ensure_ascii=False))
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert "é" in out
    assert not set(out) & {*OBEYED, "\U000e0001"}


def test_tables_are_plain_and_keep_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Rich's own output passes through the same filter, wherever it contains a text."""
    table = Table("name")
    table.add_row(HOSTILE)
    console = terminal.console()
    console.print(table)
    console.print(Text(HOSTILE, style="bold"), HOSTILE, soft_wrap=True)
    out = capsys.readouterr().out
    assert "red" in out
    assert out.count("\n") >= 5
    assert not set(out) & set(OBEYED)


def test_the_log_is_plain_too() -> None:
    """Messages and tracebacks quote peers; a traceback keeps its lines."""
    formatter = PlainFormatter("%(levelname)s %(message)s")
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        record = logging.LogRecord(
            "n", logging.ERROR, "f", 1, "from %s", (HOSTILE,), (type(error), error, None)
        )
    text = formatter.format(record)
    assert text.splitlines()[0].count("featurewatch: all is well") == 1
    assert not set(text) & set(OBEYED)


@pytest.mark.parametrize("options", [(), ("--json",), ("--compat", "3.9")])
def test_describe_shows_a_hostile_node_s_names_plainly(
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Names of features are what the node sends."""
    command = OurCommand(monkeypatch, capsys)
    node = Node(features=FeaturesResponse({HOSTILE: (0, 3)}, {HOSTILE: 1}, 7))
    with ScriptedCluster(node) as cluster:
        address = str(cluster.address())
        result = command("describe", "--bootstrap-server", address, *options)
    assert result.code == 0, result.err
    assert "red" in result.out
    assert not set(result.out + result.err) & set(OBEYED)


def test_replay_shows_a_hostile_bundle_s_names_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names in an archive are what whoever packed it wrote."""
    bundle = tmp_path / "bundle.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        name = "\x1b[2Jred"
        archive.writestr(f"{name}/__cluster_metadata-0/{0:020}.log", b"\x01" * 100)
        archive.writestr(f"{name}/meta.properties", f"cluster.id={name}\n")
    monkeypatch.setattr("featurewatch.cli.logs.set_up", lambda **_: None)
    monkeypatch.setattr("sys.argv", ["featurewatch", "replay", str(bundle)])
    with pytest.raises(SystemExit):
        main()
    out, err = capsys.readouterr()
    assert "2Jred/__cluster_metadata-0" in err
    assert not set(out + err) & set(OBEYED)


@pytest.mark.parametrize(
    ("text", "max_chars", "result"),
    [("abc", 3, "abc"), ("abcd", 3, "abc... (4 characters)"), ("", 0, "")],
)
def test_long_texts_are_shortened(text: str, max_chars: int, result: str) -> None:
    """The beginning is kept, and how long it was."""
    assert shortened(text, max_chars) == result
    assert plain(result) == result


def test_lines_before_an_error_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Many lines are written at once; those that came before an error are there, and plain."""

    def lines() -> Iterator[str]:
        yield "one\ttwo"
        yield "\x1b[31mred"
        raise ValueError("end")

    with pytest.raises(ValueError, match="end"):
        terminal.print_lines(lines())
    assert capsys.readouterr().out == "one\ttwo\n\N{REPLACEMENT CHARACTER}[31mred\n"
