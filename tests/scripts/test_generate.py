"""What follows from declarations in the code: `make generate` writes it, CI says what is stale."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from featurewatch.cli import app as app_module
from featurewatch.cli.app import SUMMARIES, app
from featurewatch.integrations.prometheus.files import GROUPS
from featurewatch.monitor.rules import RULES
from scripts import generate
from scripts.generate import FromJars, main
from scripts.generators import document_blocks, runbooks, summaries
from scripts.generators.document_blocks import BLOCKS, with_blocks
from scripts.generators.runbooks import UNWRITTEN

Generates = Callable[..., Path]


def test_every_generated_file_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """`make generate-check` ends with 0 and says nothing."""
    assert main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_wrong_arguments_write_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """They are named as such."""
    assert main(["--chek"]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root where nothing is generated."""
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "DIGESTS", tmp_path / "digests.json")
    for name in ("GENERATORS", "FROM_JARS", "_LOCKS"):
        monkeypatch.setattr(generate, name, ())
    (tmp_path / "digests.json").write_text("{}\n")
    return tmp_path


def test_stale_files_are_named_and_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line each; a file that is as it would be written is neither named nor touched."""
    texts = {root / "new/a": "1", root / "b": "2", root / "c": "3"}
    (root / "b").write_text("old")
    (root / "c").write_text("3")
    monkeypatch.setattr(generate, "GENERATORS", (lambda: iter(texts.items()),))
    assert main(["--check"]) == 3
    assert capsys.readouterr().err == (
        "b is stale: run make generate\nnew/a is stale: run make generate\n"
    )
    assert main([]) == 0
    assert capsys.readouterr().out == "new/a\nb\n"
    assert {path: path.read_text() for path in texts} == texts
    assert main(["--check"]) == 0


@pytest.mark.parametrize("changed", ["table_script.py", "input", "table"])
def test_jars_are_read_where_something_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    """The script, its inputs or its file: what nobody changed is not made again.

    What follows from a table that was written needs a process that has not loaded the old one.
    """
    (root / "scripts").mkdir()
    (root / "scripts/generate.py").write_text("open('restarts', 'a').write('1')")
    script = (
        "import pathlib; pathlib.Path('table').write_text('made'); open('runs', 'a').write('1')"
    )
    for name, text in {"table_script.py": script, "input": "", "table": "", "runs": ""}.items():
        (root / name).write_text(text)
    table = FromJars("table_script", ("input",), ("table",))
    monkeypatch.setattr(generate, "FROM_JARS", (table,))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert main(["--check"]) == 3
    for _ in range(2):
        assert main([]) == 0
    assert (main(["--check"]), (root / "runs").read_text()) == (0, "1")
    (root / changed).write_text((root / changed).read_text() + "\n")
    assert main(["--check"]) == 3
    assert main([]) == 0
    assert ((root / "table").read_text(), (root / "runs").read_text()) == ("made", "11")
    assert (root / "restarts").read_text() == "11"


def test_a_script_that_fails_ends_the_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its files stay stale."""
    (root / "table_script.py").write_text("raise SystemExit(1)")
    (root / "table").write_text("")
    monkeypatch.setattr(generate, "FROM_JARS", (FromJars("table_script", (), ("table",)),))
    with pytest.raises(SystemExit, match="table_script failed"):
        main([])
    assert main(["--check"]) == 3


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only document, with all generated parts, which are empty."""
    (tmp_path / "docs").mkdir()
    readme = tmp_path / "README.md"
    parts = (f"<!-- generated: {name} -->\n<!-- end of generated -->\n" for name in BLOCKS)
    readme.write_text("before\n" + "\n".join(parts) + "after\n")
    monkeypatch.setattr(document_blocks, "ROOT", tmp_path)
    return readme


def test_the_text_around_a_generated_part_stays(document: Path) -> None:
    """And what was generated once is generated alike again."""
    ((path, text),) = document_blocks.documents()
    assert path == document
    assert text.startswith(
        "before\n<!-- generated: topics-with-keys -->\n| topic | content | key | cleanup |\n"
    )
    assert text.endswith("```\n<!-- end of generated -->\nafter\n")
    assert with_blocks(text) == text


def test_an_unknown_part_of_a_document_is_an_error(document: Path) -> None:
    """It names the document and the part."""
    document.write_text(document.read_text().replace("generated: rules ", "generated: rule "))
    with pytest.raises(ValueError, match=r"README\.md has unknown generated parts: rule$"):
        [*document_blocks.documents()]


def test_a_part_that_no_document_has_is_an_error(document: Path) -> None:
    """Otherwise a marker that was lost would leave its table as it was."""
    document.write_text(document.read_text().replace("<!-- generated: rules -->\n", ""))
    with pytest.raises(ValueError, match="no document has the generated parts rules"):
        [*document_blocks.documents()]


def test_a_new_rule_has_its_rows_and_a_runbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is begun, and says where a person has to write; what it had there stays."""
    (model,) = (rule for rule in RULES if rule.name == "log-gap")
    rules = (*RULES, replace(model, name="log-odd", about="the log is odd | strange"))
    monkeypatch.setattr(document_blocks, "RULES", rules)
    assert "| `log-odd` | the log is odd \\| strange |\n" in BLOCKS["rules"]()
    assert re.search(r"\| `log-gap`, `log-odd` \| with the next", BLOCKS["ends-of-alerts"]())

    name = "FeaturewatchLogOdd"
    (alerting,) = (it for it in GROUPS["featurewatch-clusters"] if it.name == "FeaturewatchLogGap")
    groups = {"featurewatch-clusters": (replace(alerting, name=name),)}
    for changed, value in {"DIRECTORY": tmp_path, "GROUPS": groups, "RULES": rules}.items():
        monkeypatch.setattr(runbooks, changed, value)
    page = dict(runbooks.runbooks())[tmp_path / f"{name}.md"]
    assert page.startswith(f"# {name}\n\nAlert rule `log-odd`, severity warning: the log is odd")
    assert page.count(UNWRITTEN) == 2
    assert page.endswith(f"\nIt ends {model.ends}.\n")
    (tmp_path / f"{name}.md").write_text(page.replace(UNWRITTEN, "Written.").replace("odd", "new"))
    again = dict(runbooks.runbooks())[tmp_path / f"{name}.md"]
    assert again == page.replace(UNWRITTEN, "Written.")


def test_a_runbook_without_its_sections_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not overwritten."""
    monkeypatch.setattr(runbooks, "DIRECTORY", tmp_path)
    (tmp_path / "FeaturewatchLogGap.md").write_text("# Notes\n")
    with pytest.raises(ValueError, match=r"FeaturewatchLogGap\.md lacks"):
        [*runbooks.runbooks()]


def test_a_new_command_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its module, without an entry in the summaries, where it is added; its row is there."""
    kept = {name: text for name, text in app.summaries.items() if name != "replay"}
    before = app_module.__file__ and Path(app_module.__file__).read_text()
    monkeypatch.setattr(app, "summaries", kept)
    written = dict(summaries.summaries())[Path(app_module.__file__ or "")]
    entry = f'    "replay": "{SUMMARIES["replay"]}",\n'
    assert written.count(entry) == 1
    assert f"{entry}}}\n" in written, "at the end"
    assert sorted(written) == sorted(before or "")
    assert f"| `featurewatch replay` | {SUMMARIES['replay']} |" in BLOCKS["commands"]()


def test_a_command_that_was_removed_or_moved_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry in the summaries names a module that does not exist."""
    monkeypatch.setattr(app, "summaries", {**app.summaries, "moved-away": "A command that was."})
    written = dict(summaries.summaries())[Path(app_module.__file__ or "")]
    assert "moved-away" not in written
    assert written == Path(app_module.__file__ or "").read_text()
    assert "moved-away" not in BLOCKS["commands"]()


def test_a_release_without_locked_jars_is_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written, and the error says which script to run."""
    monkeypatch.setattr(generate, "RELEASES", {"3.3": "3.3.2", "9.9": "9.9.0"})
    monkeypatch.setattr(generate, "GENERATORS", (lambda: iter([(root / "a", "1")]),))
    with pytest.raises(SystemExit, match=r"has Kafka 9\.9\.0.*scripts\.lock_jars"):
        main([])
    assert not (root / "a").exists()


def test_summaries_are_as_the_formatter_leaves_them() -> None:
    """The last line of an entry may have exactly the width that lines have."""
    assert [*summaries.lines_of("name", "a " + "b" * 83)] == [f'    "name": "a {"b" * 83}",']
    assert [*summaries.lines_of("name", "a " + "b" * 84)] == [
        '    "name": "a "',
        f'    "{"b" * 84}",',
    ]
