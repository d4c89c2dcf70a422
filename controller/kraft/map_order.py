"""The order in which a controller walks its maps, which decides what it names first.

A request's updates lie in a ``java.util.HashMap``, registrations in a ``TimelineHashMap``. Neither
keeps the order in which things came: it follows from hashes and from the size of the table.
"""

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import TypeVar

K = TypeVar("K")

_DEFAULT_CAPACITY = 16
_FIBONACCI = -7046029254386353131


def string_hash(text: str) -> int:
    """``String.hashCode``, signed."""
    data = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for at in range(0, len(data), 2):
        found = (31 * found + int.from_bytes(data[at : at + 2])) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found


def hash_map_order(keys: Iterable[str], copied_of: int = 0, java: int = 17) -> list[str]:
    """Keys put one by one into a ``HashMap``, in the order in which it gives them back.

    ``copied_of`` is the size of the map that it was copied from, if any: the first that many keys
    are the copy's, and it is the copy that settles how large the table begins. That changed with
    Java 19 (JDK-8281631). Buckets of more than seven keys, which become trees, are left out.
    """
    ordered = list(dict.fromkeys(keys))
    capacity = _copy_capacity(copied_of, java) if copied_of else _DEFAULT_CAPACITY
    while len(ordered) > int(capacity * 0.75):
        capacity *= 2
    return sorted(ordered, key=lambda key: _spread(string_hash(key)) & (capacity - 1))


def _spread(hashed: int) -> int:
    unsigned = hashed & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)


def _copy_capacity(size: int, java: int) -> int:
    wanted = ceil(size / 0.75) if java >= 19 else int(size / 0.75 + 1.0)
    return 1 << max(wanted - 1, 0).bit_length()


def timeline_map_order(keys: Sequence[K], hashed: Callable[[K], int]) -> list[K]:
    """Keys put one by one into an empty ``TimelineHashMap``, in the order of its iterator.

    Within a slot the newest comes first. A key that was put again, or taken out, may have left the
    table larger than its size says: a controller that ran for long can differ from this.
    """
    capacity = 2
    for before in range(len(keys)):
        if (before + 1) * 0.75 > capacity:
            capacity *= 2
    shift = 64 - (capacity.bit_length() - 1)

    def slot(key: K) -> int:
        return ((hashed(key) * _FIBONACCI) & (1 << 64) - 1) >> shift

    newest_first = list(reversed(keys))
    return sorted(newest_first, key=slot)


def by_id(ids: Sequence[int]) -> list[int]:
    """Node ids in the order of a ``TimelineHashMap``."""
    return timeline_map_order(ids, lambda one: one)


def by_name(names: Iterable[str]) -> list[str]:
    """Names in the order of a ``TreeMap``: by UTF-16 code units."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
