"""The iteration order of a controller's maps, which decides which node or feature it names first.

A request's updates are in a ``java.util.HashMap``, registrations in a ``TimelineHashMap``. Neither
keeps the insertion order: theirs follows from the hashes and the size of the table.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import TypeVar

K = TypeVar("K")

_DEFAULT_CAPACITY = 16
_FIBONACCI = -7046029254386353131
_UTF_16 = f"utf-16-{sys.byteorder[0]}e"
"""In the order of bytes in which this machine reads two as a number."""


def string_hash(text: str) -> int:
    """``String.hashCode``, signed."""
    hash_code = 0
    for unit in memoryview(text.encode(_UTF_16, "surrogatepass")).cast("H"):
        hash_code = (31 * hash_code + unit) & 0xFFFFFFFF
    return hash_code - (1 << 32) if hash_code >= 1 << 31 else hash_code


def hash_map_order(keys: Iterable[str], copied_of: int = 0, java: int = 17) -> list[str]:
    """Keys that were put into a ``HashMap`` one after another, in its iteration order.

    ``copied_of`` is the number of leading keys that came with the copy of another map, 0 without
    a copy; the copy decides the initial size of the table, by a formula that changed with Java 19
    (JDK-8281631). Buckets of more than seven keys, which become trees, are not modelled.
    """
    capacity = _copy_capacity(copied_of, java) if copied_of else _DEFAULT_CAPACITY
    return hash_order(keys, string_hash, capacity)


def hash_order(
    keys: Iterable[K], hashed: Callable[[K], int], capacity: int = _DEFAULT_CAPACITY
) -> list[K]:
    """Keys of any class that were put into a ``HashMap`` or ``HashSet``, in its iteration order.

    ``hashed`` is their ``hashCode``, ``capacity`` the size of the table that it begins with.
    """
    ordered = list(dict.fromkeys(keys))
    while len(ordered) > int(capacity * 0.75):
        capacity *= 2
    return sorted(ordered, key=lambda key: _spread(hashed(key)) & (capacity - 1))


def sized_hash_map_order(keys: Iterable[str]) -> list[str]:
    """Keys that were put into a ``HashMap`` created for their number, in its iteration order."""
    ordered = list(dict.fromkeys(keys))
    capacity = 1 << max(len(ordered) - 1, 0).bit_length()
    while len(ordered) > int(capacity * 0.75) and len(ordered) > 1:
        capacity *= 2
    return sorted(ordered, key=lambda key: _spread(string_hash(key)) & (capacity - 1))


def _spread(hashed: int) -> int:
    unsigned = hashed & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)


def _copy_capacity(size: int, java: int) -> int:
    wanted = ceil(size / 0.75) if java >= 19 else int(size / 0.75 + 1.0)
    return 1 << max(wanted - 1, 0).bit_length()


def timeline_map_order(keys: Sequence[K], hashed: Callable[[K], int]) -> list[K]:
    """Keys that were put into an empty ``TimelineHashMap`` one after another, in its order.

    Within a slot the newest comes first. The table never shrinks: a controller whose keys
    were put again or removed may have a larger one, and another order.
    """
    capacity = 2
    for count in range(len(keys)):
        if (count + 1) * 0.75 > capacity:
            capacity *= 2
    shift = 64 - (capacity.bit_length() - 1)

    def slot(key: K) -> int:
        return ((hashed(key) * _FIBONACCI) & (1 << 64) - 1) >> shift

    newest_first = list(reversed(keys))
    return sorted(newest_first, key=slot)


def by_id(ids: Sequence[int]) -> list[int]:
    """Node ids in the order of a ``TimelineHashMap``."""
    return timeline_map_order(ids, lambda node_id: node_id)


def by_name(names: Iterable[str]) -> list[str]:
    """Names in the order of a ``TreeMap``: by UTF-16 code units."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
