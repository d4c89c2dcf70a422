"""The recipes for engineers name files and names that exist."""

import re
from pathlib import Path

import pytest

from tests.paths import PACKAGE, ROOT

_NAMED_PLACE = re.compile(r"`([\w.]+)`\s+\(`([\w./]+\.py)`\)")
_PLACE = re.compile(r"`((?:[\w.]+/)+[\w.]*|\w+\.py)`")


def _file(path: str) -> Path:
    """A file or directory that a recipe names: below the package, or from the root on."""
    is_of_root = path.startswith(("src/", "tests/", "docs/", "scripts/"))
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
