"""Which partition of each topic has the messages of a cluster."""

from functools import lru_cache
from typing import Final

_MAX_KEPT_BYTES: Final = 256
"""Kafka's cluster ids have 22; anybody can send longer keys, whose answers are not kept."""


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key, as Java's, aiokafka's and librdkafka's murmur2 partitioners choose
    it."""
    positive = _kept_murmur2(key) if len(key) <= _MAX_KEPT_BYTES else _murmur2(key)
    return (positive & 0x7FFFFFFF) % partitions


@lru_cache(maxsize=1024)
def _kept_murmur2(key: bytes) -> int:
    return _murmur2(key)


def _murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bit, with the seed of Kafka's ``Utils.murmur2``."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    length = len(data)
    value = 0x9747B28C ^ length
    whole = length - length % 4
    for at in range(0, whole, 4):
        block = int.from_bytes(data[at : at + 4], "little") * factor & mask
        block = (block ^ (block >> 24)) * factor & mask
        value = (value * factor & mask) ^ block
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & mask
    value = (value ^ (value >> 13)) * factor & mask
    return value ^ (value >> 15)
