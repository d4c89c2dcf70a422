"""The recipes for engineers name files and names that exist."""

import re
from pathlib import Path

import pytest

from featurewatch.cli.config.settings import WebSection
from featurewatch.common.json_log import FIELDS
from tests.documents.following import block_of
from tests.paths import PACKAGE, ROOT

_NAMED_PLACE = re.compile(r"`([\w.]+)`\s+\(`([\w./]+\.py)`\)")
_PLACE = re.compile(r"`((?:[\w.]+/)+[\w.]*|\w+\.py)`")


def _file(path: str) -> Path:
    """A file or directory that a recipe names: below the package, or from the root on."""
    is_of_root = path.startswith(("src/", "tests/", "docs/", "scripts/", "examples/"))
    return (ROOT if is_of_root else PACKAGE) / path


@pytest.mark.parametrize("page", ["extend", "releases"])
def test_a_recipe_names_what_exists(page: str) -> None:
    """Each file of a recipe is there, and a name before a file in brackets is in that file."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text()
    places = {place for place in _PLACE.findall(text) if "/" in place}
    assert [place for place in sorted(places) if not _file(place).exists()] == []
    named = _NAMED_PLACE.findall(text)
    assert named
    for name, place in named:
        last = name.rpartition(".")[2]
        assert re.search(rf"\b{last}\b", _file(place).read_text()), f"{place} has no {last}"


def test_the_collector_reads_what_featurewatch_writes() -> None:
    """The recipe for OpenTelemetry has the ports of `/metrics`, and fields that lines have."""
    recipe = block_of("docs/how-to/opentelemetry.md", "yaml", "receivers:\n  prometheus:")
    receivers = recipe["receivers"]
    (job,) = receivers["prometheus"]["config"]["scrape_configs"]
    targets = job["static_configs"][0]["targets"]
    web = WebSection()
    assert targets == [
        f"{web.host}:{port}" for port in (web.source_port, web.worker_port, web.notify_port)
    ]
    assert job["honor_labels"] is True  # kafka_cluster is ours
    parser, *others = receivers["filelog"]["operators"]
    named = [parser["timestamp"]["parse_from"], parser["severity"]["parse_from"]]
    named += [each.get("from") or each["field"] for each in others]
    assert {name.removeprefix("attributes.") for name in named} == set(FIELDS) - {"source"}
    pipelines = recipe["service"]["pipelines"].values()
    for kind in ("receivers", "processors", "exporters"):
        assert {name for pipeline in pipelines for name in pipeline[kind]} == set(recipe[kind])
