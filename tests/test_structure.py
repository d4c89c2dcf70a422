"""The shape of the source: names that are defined once, and folders that a person can look over."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from scripts.draw_tree import DOCUMENT, FOLDERS, ROOT, TREE, tree

PACKAGE = ROOT / "src" / "featurewatch"
MAX_MODULES = 15
MIN_LINES = 30
COMMANDS = "cli/commands/"

DEFINED_TWICE: dict[str, str] = {}
"""Class names that stand for two things, each with its reason."""

SHORT = {
    "kafka/messages/base.py": "the modules of messages share it",
    "agents/input_agents.py": "the one agent there is; the worker only puts parts together",
    "cli/config/lake.py": "commands of the pipeline declare these options without importing Spark",
    "cli/config/values.py": "the settings and the commands that read none check the same values",
    "cli/errors.py": "every command imports it, and it must be light",
    "cli/runtime/spark_jars.py": "deploy does not know Spark, and pipeline does not import deploy",
    "common/tasks.py": "the page of cli/output runs its parts as the processes of cli/runtime do",
    "deploy/spark/featurewatch_job.py": "spark-submit runs it",
    "tables/garbage.py": "every engine that holds images sets the same thresholds",
}
"""Modules of fewer than `MIN_LINES` lines, each with the reason that it stands alone.

Those of `COMMANDS` may be as short: they have one command each.
"""


def modules() -> Iterator[tuple[str, str]]:
    """Each module of the product: its path below the root, and its text."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield str(file.relative_to(ROOT)), file.read_text()


def test_class_names_are_unique() -> None:
    """No class name is defined twice in the whole of the product."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in modules():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    twice = {name: files for name, files in places.items() if len(files) > 1}
    assert twice.keys() == DEFINED_TWICE.keys(), twice


def test_no_folder_is_crowded() -> None:
    """No folder has more than 15 modules beside its ``__init__``."""
    counts: defaultdict[str, int] = defaultdict(int)
    for name, _ in modules():
        counts[str(Path(name).parent)] += not name.endswith("__init__.py")
    assert {folder: count for folder, count in counts.items() if count > MAX_MODULES} == {}


def test_a_short_module_has_a_reason() -> None:
    """A module of fewer than 30 lines stands in the table above, and no other does."""
    short = {
        name
        for name, text in modules()
        if text.count("\n") < MIN_LINES
        and not name.endswith("__init__.py")
        and not name.startswith(COMMANDS)
    }
    assert short == SHORT.keys()


def test_packages_say_what_they_hold() -> None:
    """Each ``__init__`` has a docstring."""
    silent = [
        name
        for name, text in modules()
        if name.endswith("__init__.py") and not ast.get_docstring(ast.parse(text))
    ]
    assert silent == []


def test_the_root_package_holds_links_to_every_folder() -> None:
    """``src/featurewatch`` has a relative link to each folder of the product, and no code."""
    links = {link.name: link.readlink() for link in PACKAGE.iterdir() if link.is_symlink()}
    assert links == {folder: Path("..", "..", folder) for folder in FOLDERS}
    code = {file.name for file in PACKAGE.iterdir() if file.is_file()}
    assert code == {"__init__.py", "__main__.py", "py.typed"}


def test_contributing_draws_the_packages() -> None:
    """The tree is the packages as they are; ``python -m scripts.draw_tree`` writes it."""
    drawn = [text for _, text, _ in TREE.findall(DOCUMENT.read_text())]
    assert drawn == [tree()]
