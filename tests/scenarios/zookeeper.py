"""The events of ZooKeeper in a scenario's words.

- ``read s1 50 b1:mv=1-21@10 feature:mv=3@5.2 controller:1@7``: all is read again as reading ``s1``,
  up to transaction 50; ``read s1.0 50 ...`` and ``read s1.1! 50 ...``: in parts, and the last one,
- ``znode 61 feature:mv=4@5.3``: a change, seen up to transaction 61; ``missed=2`` and ``recreated``
  may follow,
- ``gone 62 b1``: a znode was deleted.

A znode is ``path:content@czxid.version`` with these contents, or ``?`` if it cannot be read:

- ``b1:4.3`` (a release's ranges), ``b1:mv=1-21,tv=0-2``, ``b1:none`` (broker),
- ``feature:mv=3,tv=1``, ``feature:none``, ``feature:off``; ``features`` is the drafts' znode,
- ``controller:1``, ``controller:3000k`` (a KRaft one), ``epoch:4``, ``migration:3000``.
"""

from collections.abc import Mapping
from dataclasses import replace

from featurewatch.streams.events import Event
from featurewatch.streams.znodes import UnreadableZnode, Znode, ZnodeContent
from tests.simulation import znodes as z
from tests.simulation.records import Ranges
from tests.simulation.world import RELEASES

PATHS = {
    "feature": z.FEATURE,
    "features": z.DRAFT,
    "controller": "/controller",
    "epoch": "/controller_epoch",
    "migration": "/migration",
}


def path_of(word: str) -> str:
    """``b1`` or ``feature`` as a path."""
    return PATHS.get(word) or f"/brokers/ids/{int(word[1:])}"


def znode_of(word: str, names: Mapping[str, str]) -> Znode:
    """``feature:mv=3@5.2``; ``names`` has the long names of features."""
    what, _, place = word.partition("@")
    czxid, _, version = place.partition(".")
    name, _, content = what.partition(":")
    parsed = _content(name, content, names)
    return z.znode(path_of(name), parsed, int(czxid), int(version or 0))


def events(verb: str, words: tuple[str, ...], names: Mapping[str, str], now_ms: int) -> list[Event]:
    """What ``read``, ``znode`` or ``gone`` stand for."""
    if verb == "gone":
        return [z.deleted(path_of(words[1]), int(words[0]), now_ms)]
    if verb == "znode":
        zxid, word, *marks = words
        missed = next((int(mark[7:]) for mark in marks if mark.startswith("missed=")), 0)
        again = "recreated" in marks
        znode = znode_of(word, names)
        return [z.change(znode, int(zxid), now_ms, missed=missed, recreated=again)]
    name, zxid, *rest = words
    reading, _, part = name.partition(".")
    parts = z.reading(reading, (znode_of(word, names) for word in rest), int(zxid), seen_ms=now_ms)
    if not part:
        return [*parts]
    (whole,) = parts
    return [replace(whole, index=int(part.rstrip("!")), last=part.endswith("!"))]


def _content(name: str, content: str, names: Mapping[str, str]) -> ZnodeContent:
    if content == "?":
        return UnreadableZnode("not JSON")
    if name in ("feature", "features"):
        enabled = content != "off"
        pairs = [pair.split("=") for pair in content.split(",") if "=" in pair]
        levels = {names[short]: int(level) for short, level in pairs}
        return z.features(levels, path=PATHS[name], enabled=enabled).content
    if name == "controller":
        return z.controller(
            int(content.rstrip("k")), kraft_epoch=3 if content.endswith("k") else -1
        ).content
    if name == "epoch":
        return z.controller_epoch(int(content)).content
    if name == "migration":
        return z.migration(int(content)).content
    return z.broker(int(name[1:]), _ranges(content, names)).content


def _ranges(content: str, names: Mapping[str, str]) -> Ranges:
    if content in RELEASES or content == "none":
        return RELEASES.get(content, {})
    ranges = {}
    for pair in content.split(","):
        short, _, bounds = pair.partition("=")
        low, _, high = bounds.partition("-")
        ranges[names[short]] = (int(low), int(high))
    return ranges
