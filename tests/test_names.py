"""Names that are data are the field's plain terms: no name is a metaphor of speech, or a riddle."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from featurewatch.agents.metric_defs import METRICS as WORKER_METRICS
from featurewatch.controller.rehearsal.steps import GRAMMAR
from featurewatch.integrations.notify.metrics import METRICS as NOTIFY_METRICS
from featurewatch.monitor.rules import RULES
from featurewatch.pipeline.gold.tables import AUDIT, GOLD
from featurewatch.pipeline.lake.tables import BRONZE
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.streams.metrics import METRICS as SOURCE_METRICS
from featurewatch.streams.topics import ALL
from scripts.draw_tree import FOLDERS, ROOT

REFUSED = [
    "said",
    "says",
    "told",
    "tells",
    "heard",
    "asked",
    "way_back",
    "doubt",
    "unsaid",
    "twice",
    "why",
    "what",
]

PRINTED = ("cli/commands/", "cli/output/", "monitor/rules/", "streams/health.py", "web/")
"""Where dictionaries are printed as JSON, published as evidence, or served."""


def refused_words(name: str) -> list[str]:
    """The refused words that a name holds as whole words."""
    padded = f"_{re.sub(r'[^0-9a-z]', '_', name.lower())}_"
    return [word for word in REFUSED if f"_{word}_" in padded]


def schema_names(schema: Any) -> Iterator[str]:
    """The properties, kinds and other constants of a JSON Schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        yield from (text for text in schema.get("enum", ()) if isinstance(text, str))
        yield from (text for text in [schema.get("const")] if isinstance(text, str))
    if isinstance(schema, dict | list):
        for part in schema.values() if isinstance(schema, dict) else schema:
            yield from schema_names(part)


def names_of_schemas() -> Iterator[str]:
    """All names in the JSON Schemas of the topics."""
    for file in (ROOT / "streams" / "schemas").glob("*.json"):
        yield from schema_names(orjson.loads(file.read_bytes()))


def names_of_tables() -> Iterator[str]:
    """The tables of the lake, their columns, and the fields of columns that are structs."""
    for table in (*BRONZE, *SILVER, *GOLD, AUDIT):
        yield table.name
        for column, kind in table.columns.items():
            yield from (column, *re.findall(r"(\w+):", kind))


def names_in_registries() -> Iterator[str]:
    """Topics, alert rules, metrics and the steps of a rehearsal."""
    yield from (topic.short_name for topic in ALL)
    yield from (rule.name for rule in RULES)
    yield from (metric.name for metric in (*SOURCE_METRICS, *WORKER_METRICS, *NOTIFY_METRICS))
    yield from (line.partition(":")[0] for line in GRAMMAR.splitlines())


def names_in_code() -> Iterator[str]:
    """Fields of all classes, values of enumerations, and keys of dictionaries that are output."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            is_printed = str(file.relative_to(ROOT)).startswith(PRINTED)
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    yield from class_names(node)
                elif is_printed and isinstance(node, ast.Dict):
                    yield from filter(None, map(text_of, node.keys))
                elif is_printed and isinstance(node, ast.Subscript):
                    yield from filter(None, [text_of(node.slice)])


def class_names(node: ast.ClassDef) -> Iterator[str]:
    """The annotated fields of a class, and the values of its members if these are texts."""
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
        elif isinstance(statement, ast.Assign):
            yield from filter(None, [text_of(statement.value)])


def text_of(node: ast.expr | None) -> str | None:
    """The text of a literal."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


@pytest.mark.parametrize(
    "source", [names_of_schemas, names_of_tables, names_in_registries, names_in_code]
)
def test_names_of_data_are_plain_terms(source: Any) -> None:
    """No field, column, key, kind, rule, metric or step holds a refused word."""
    names = set(source())
    assert len(names) > 20
    assert {name: words for name in sorted(names) if (words := refused_words(name))} == {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("way_back", ["way_back"]),
        ("said_at", ["said"]),
        ("so-what", ["what"]),
        ("whatever", []),
        ("downgrade_path", []),
    ],
)
def test_words_are_refused_as_a_whole(name: str, words: list[str]) -> None:
    """A longer word that only begins like a refused one is none."""
    assert refused_words(name) == words
