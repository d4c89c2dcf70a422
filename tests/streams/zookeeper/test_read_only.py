"""The watcher cannot write: nothing that writes is called anywhere."""

import ast
from pathlib import Path

from featurewatch import streams

READS = {"get_async", "get_children_async", "exists_async", "sync_async"}
SESSION = {"start_async", "stop", "close", "add_listener", "remove_listener"}
STATE = {"client_id", "client_state", "last_zxid"}
WRITES = {
    name + form
    for name in (
        "create",
        "ensure_path",
        "delete",
        "set_acls",
        "transaction",
        "add_auth",
        "reconfig",
    )
    for form in ("", "_async")
} | {"set_async", "retry"}
STREAMS = Path(streams.__file__).parent
SOURCES = sorted(STREAMS.rglob("*.py"))


def attributes(path: Path, of: str) -> set[str]:
    """The names that a file takes from ``<anything>.of``."""
    tree = ast.parse(path.read_text())
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == of
    }


def test_of_the_client_only_reads_are_called():
    """Every attribute of kazoo's client that is used is known, and is no write."""
    package = STREAMS / "zookeeper"
    used = set().union(*(attributes(path, "_client") for path in package.rglob("*.py")))
    assert used == READS | SESSION | STATE


def test_kazoo_is_used_in_one_place():
    """Nobody else among the sources has a client; the handler has none."""
    users = [path.name for path in SOURCES if "kazoo" in _imports(path)]
    assert users == ["in_order_handler.py", "session.py"]


def test_no_write_of_kazoo_is_used():
    """Neither as it is nor as its asynchronous form."""
    users = [path for path in SOURCES if "kazoo" in _imports(path)]
    nodes = [node for path in users for node in ast.walk(ast.parse(path.read_text()))]
    named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert named
    assert not named & WRITES


def _imports(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module.partition(".")[0])
    return modules
