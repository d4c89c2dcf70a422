"""Texts for people."""

import pytest

from featurewatch.common.text import enumeration


@pytest.mark.parametrize(
    ("parts", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_an_enumeration(parts: list[str], text: str) -> None:
    """As in a sentence."""
    assert enumeration(iter(parts)) == text
