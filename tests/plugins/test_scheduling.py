"""The plugin that hands out folders of tests."""

from pathlib import Path

import pytest

from tests.plugins.scheduling import LONGEST, rank_of, scope_of

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]

INI = f"""
[pytest]
addopts = -p xdist -p tests.plugins.scheduling -p no:cacheprovider --import-mode=importlib
pythonpath = {ROOT}
"""
TEST = """
import os, pathlib

def test_one():
    with pathlib.Path({log!r}).open("a") as log:
        log.write(os.environ["PYTEST_XDIST_WORKER"] + " {name}\\n")

def test_other():
    test_one()

def test_third():
    test_one()
"""


def test_the_longest_folders_exist() -> None:
    """A folder that was renamed would be handed out late, and nobody would notice."""
    for folder in LONGEST:
        assert [*(ROOT / folder).rglob("test_*.py")], folder


def test_a_folder_is_one_scope_unless_those_below_it_are() -> None:
    """Tests of a folder share clusters and a Spark session."""
    assert scope_of("tests/pipeline/gold/test_gold.py::test_a[x/y]") == "tests/pipeline"
    assert scope_of("tests/integration/kraft/test_a.py::test_a") == "tests/integration/kraft"
    assert scope_of("tests/test_names.py::test_a") == "tests/test_names.py"
    assert rank_of("tests/pipeline/test_idle.py::test_a") < rank_of(
        "tests/agents/test_a.py::test_a"
    )
    assert rank_of("tests/tables/test_a.py::test_a") == len(LONGEST)


def test_each_process_begins_with_one_of_the_longest_folders(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever they are in the order of names."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini(INI)
    log = pytester.path / "log"
    for folder in ("tests/admin", "tests/cli", *LONGEST[:2]):
        file = pytester.path / folder / "test_some.py"
        file.parent.mkdir(parents=True)
        file.write_text(TEST.format(log=str(log), name=folder))
    result = pytester.runpytest_subprocess("-n", "2")
    assert result.ret == 0
    first: dict[str, str] = {}
    for line in log.read_text().splitlines():
        worker, folder = line.split()
        first.setdefault(worker, folder)
    assert {*first.values()} == {*LONGEST[:2]}


@pytest.mark.parametrize(("options", "workers"), [((), 1), (("--dist", "loadfile"), 2)])
def test_the_files_of_a_folder_are_shared_out_if_asked(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    workers: int,
) -> None:
    """They run in one process otherwise."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini(INI)
    log = pytester.path / "log"
    folder = pytester.path / LONGEST[0]
    folder.mkdir(parents=True)
    for name in ("test_a", "test_b"):
        (folder / f"{name}.py").write_text(TEST.format(log=str(log), name=name))
    result = pytester.runpytest_subprocess("-n", "2", *options)
    assert result.ret == 0
    lines = log.read_text().splitlines()
    assert len(lines) == 6
    assert len({line.split()[0] for line in lines}) == workers


def test_two_tests_of_one_name_end_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several processes only one of them would run."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini(INI)
    pytester.makepyfile(TEST.format(log=str(pytester.path / "log"), name="a"))
    pytester.makeconftest("def pytest_collection_modifyitems(items): items.append(items[0])")
    result = pytester.runpytest_subprocess()
    result.stderr.fnmatch_lines(["*2 tests have one name: *test_one*"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
