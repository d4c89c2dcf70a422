"""JSON documents with a value that nobody would write there."""

from typing import Any

from hypothesis import strategies as st

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([-1, 0, 1, 2, 2**31 - 1, 2**63 - 1])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def _paths(value: Any) -> list[tuple[Any, ...]]:
    """The way to each value in a document."""
    items = value.items() if type(value) is dict else enumerate(value)
    paths: list[tuple[Any, ...]] = []
    for key, item in items:
        paths.append((key,))
        if type(item) in (dict, list):
            paths.extend((key, *rest) for rest in _paths(item))
    return paths


def forge(draw: st.DrawFn, document: Any) -> None:
    """Replaces one value of a document, at any depth, by any JSON."""
    *way, last = draw(st.sampled_from(_paths(document)))
    inner = document
    for key in way:
        inner = inner[key]
    inner[last] = draw(JSON)
