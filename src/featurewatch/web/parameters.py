"""Parameters of requests, and cursors of pages. Pure.

A cursor holds the sort key of the last item of a page, so the next page continues there whatever
was added or removed before it. It is bound to its query: under another one it is refused.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from featurewatch.web.problems import wrong_parameter

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
MAX_TEXT_CHARS: Final = 300
"""Longest parameter in characters; a cluster's id has up to 249."""

_MAX_CURSOR_CHARS: Final = 2_000

_ItemT = TypeVar("_ItemT")
SortKey = tuple[str | int, ...]


class Page(NamedTuple):
    """A page of a list: its items, the number of all, and the cursor of the next one, if any."""

    items: list[Any]
    total: int
    next_cursor: str | None


def check_names(query: Mapping[str, str], allowed: Sequence[str]) -> None:
    """Raises `ProblemError` for a parameter that the resource does not have, or a long one."""
    for name, value in query.items():
        if name not in allowed:
            raise wrong_parameter(name[:40], f"is unknown here; there are {', '.join(allowed)}.")
        if len(value) > (_MAX_CURSOR_CHARS if name == "cursor" else MAX_TEXT_CHARS):
            raise wrong_parameter(name, "is too long.")


def choice(query: Mapping[str, str], name: str, choices: Sequence[str]) -> str | None:
    """A parameter that has one of a few values; None: it was not given."""
    value = query.get(name)
    if value is not None and value not in choices:
        raise wrong_parameter(name, f"must be one of {', '.join(choices)}.")
    return value


def limit_of(query: Mapping[str, str]) -> int:
    """The largest number of items on a page."""
    text = query.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_LIMIT))
    if not is_number or not 1 <= int(text) <= MAX_LIMIT:
        raise wrong_parameter("limit", f"must be a number from 1 to {MAX_LIMIT}.")
    return int(text)


def page(
    items: Sequence[_ItemT],
    sort_key: Callable[[_ItemT], SortKey],
    query: Mapping[str, str],
    resource: str,
) -> Page:
    """The page of all ``items`` that a query wants, sorted; raises `ProblemError`."""
    return page_of_sorted(sorted_by(items, sort_key), query, resource)


def sorted_by(
    items: Iterable[_ItemT], sort_key: Callable[[_ItemT], SortKey]
) -> list[tuple[SortKey, _ItemT]]:
    """Items with their keys, sorted."""
    return sorted(((sort_key(item), item) for item in items), key=lambda pair: pair[0])


def page_of_sorted(
    keyed: Sequence[tuple[SortKey, Any]], query: Mapping[str, str], resource: str
) -> Page:
    """The page of what `sorted_by` returned, or of a part of it, that a query wants; raises
    `ProblemError`."""
    limit = limit_of(query)
    start = 0
    if "cursor" in query:
        after = _decode(query["cursor"], _fingerprint(query, resource))
        try:
            start = sum(key <= after for key, _ in keyed)
        except TypeError:
            raise _foreign_cursor() from None
    chosen = keyed[start : start + limit]
    more = start + limit < len(keyed)
    cursor = _encode(chosen[-1][0], _fingerprint(query, resource)) if more and chosen else None
    return Page([item for _, item in chosen], len(keyed), cursor)


def _fingerprint(query: Mapping[str, str], resource: str) -> str:
    """The query of a cursor: the resource and the parameters that select and sort."""
    given = sorted(item for item in query.items() if item[0] not in ("cursor", "limit"))
    return sha256(orjson.dumps([resource, given])).hexdigest()[:12]


def _encode(key: SortKey, fingerprint: str) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([fingerprint, *key])).decode().rstrip("=")


def _decode(text: str, fingerprint: str) -> SortKey:
    try:
        padded = text + "=" * (-len(text) % 4)
        content = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        raise _foreign_cursor() from None
    is_key = type(content) is list and all(type(part) in (str, int) for part in content)
    if not is_key or content[:1] != [fingerprint]:
        raise _foreign_cursor()
    return tuple(content[1:])


def _foreign_cursor() -> Exception:
    return wrong_parameter(
        "cursor", "belongs to another query: begin without one, and follow the links of the pages."
    )
