"""Answers that fit into an assistant's context: long lists are cut, and say by how much. Pure."""

from typing import Any, Final

import orjson

from featurewatch.common.text import MAX_DETAIL_CHARS, shortened

MAX_ANSWER_CHARS: Final = 40_000
_LENGTHS: Final = (200, 100, 50, 20, 10, 5, 2, 1, 0)
_MAX_DEPTH: Final = 20


def bounded_text(content: Any, max_chars: int = MAX_ANSWER_CHARS) -> str:
    """Returns a JSON value as text of at most ``max_chars`` characters.

    Lists, and objects with many names, keep their first items; what was left out is counted where
    it was. Texts are shortened.
    """
    for length in _LENGTHS:
        text = orjson.dumps(_cut(content, length, _MAX_DEPTH)).decode()
        if len(text) <= max_chars:
            return text
    return orjson.dumps({"left_out": "the answer is too large: ask for less"}).decode()


def _cut(value: Any, length: int, depth: int) -> Any:
    if isinstance(value, str):
        return shortened(value, MAX_DETAIL_CHARS)
    if not isinstance(value, list | dict) or not value:
        return value
    if depth == 0:
        return {"left_out": len(value)}
    if isinstance(value, list):
        kept = [_cut(item, length, depth - 1) for item in value[:length]]
        left_out = len(value) - len(kept)
        return [*kept, {"left_out": left_out}] if left_out else kept
    # Documents have some thirty fields; more are a mapping of nodes or features.
    names = list(value)
    kept_names = names[: max(length, 40)]
    document = {name: _cut(value[name], length, depth - 1) for name in kept_names}
    if len(names) > len(kept_names):
        document["left_out"] = len(names) - len(kept_names)
    return document
