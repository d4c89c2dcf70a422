"""Questions by chance: clusters in the midst of an upgrade, and every way to get a request wrong.

A question follows from its seed and the release alone. Clusters are mostly plausible, since a
request that is refused at the first check shows nothing of the later ones.
"""

from base64 import urlsafe_b64encode
from dataclasses import replace
from random import Random

from featurewatch.controller.kraft.conformance.questions import ControllerRequest, RequestInState
from featurewatch.controller.kraft.registration import BrokerRegistrationRequest, Offered
from featurewatch.controller.kraft.releases import release_of, releases
from featurewatch.controller.kraft.requests import LevelUpdate, UpdateRequest
from featurewatch.controller.kraft.state import (
    ControllerState,
    MinInsync,
    RegisteredBroker,
    RegisteredController,
    ZkMigrationState,
)
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    SupportedRange,
    SupportedRanges,
    UpgradeType,
)

Ranges = dict[FeatureName, SupportedRange]

STRANGE = tuple(FeatureName(name) for name in ("foo", "", "ünïcode.version", "Aa", "BB", "C#"))
"""Features that no release knows; three of them have one hash code in Java."""


def question(release: str, seed: int) -> RequestInState:
    """The question with this seed."""
    chance = Random(f"{release}/{seed}")
    state = _state(release, chance)
    kind = chance.random()
    if kind < 0.7:
        return RequestInState(state, _update(state, chance), chance.randrange(1000))
    if kind < 0.97:
        return RequestInState(state, _broker(state, chance), chance.randrange(1000))
    return RequestInState(state, ControllerRequest(chance.randrange(9)))


def _uuid(chance: Random) -> str:
    return urlsafe_b64encode(chance.randbytes(16)).decode().rstrip("=")


def _ranges(chance: Random, around: str) -> Ranges:
    """The ranges of a node: mostly some release's, sometimes changed."""
    near = [around] * 4 + list(releases())
    release_nearby = release_of(chance.choice(near))
    ranges = dict(release_nearby.ranges(unstable=chance.random() < 0.3))
    while chance.random() < 0.15:
        name = chance.choice([*ranges, *STRANGE]) if ranges else chance.choice(STRANGE)
        bend = chance.randrange(5)
        if bend == 0:
            ranges.pop(name, None)
        elif bend == 1:
            level = chance.randrange(25)
            ranges[name] = SupportedRange(level, level)
        elif bend == 2:
            low = chance.randrange(4)
            ranges[name] = SupportedRange(low, low + chance.choice((0, 1, 2, 30)))
        elif bend == 3:
            ranges[name] = SupportedRange(chance.randrange(3), 32767)
        else:
            ranges[name] = SupportedRange(chance.randrange(3), 0)
    names = list(ranges)
    chance.shuffle(names)
    return {name: ranges[name] for name in names}


def _state(release: str, chance: Random) -> ControllerState:
    own = release_of(release)
    local: Ranges = dict(own.ranges(unstable=chance.random() < 0.5))
    if chance.random() < 0.3:
        for name in chance.sample(STRANGE, 2):
            low = chance.randrange(2)
            local[name] = SupportedRange(low, low + chance.choice((0, 1, 3)))
    if chance.random() < 0.1:
        wide = chance.choice([*local])
        local[wide] = SupportedRange(chance.randrange(3), chance.choice((3, 24, 40, 32767)))
    levels = _levels(local, own.levels[-1].level, chance, sloppy=chance.random() < 0.04)
    ids = [NodeId(node_id) for node_id in chance.sample(range(12), chance.choice((1, 3, 3, 5)))]
    wide_ids = range(chance.choice((12, 12, 2000)))
    broker_ids = chance.sample(wide_ids, chance.choice((0, 1, 2, 3, 6, 11)))
    calm = chance.random() < 0.6
    brokers = tuple(
        RegisteredBroker(
            NodeId(node_id),
            SupportedRanges(local if calm else _ranges(chance, release)),
            fenced=chance.random() < 0.3,
            shutting_down=chance.random() < 0.1,
            epoch=chance.randrange(1000),
            incarnation=_uuid(chance),
            directories=tuple(_uuid(chance) for _ in range(chance.choice((0, 1, 2)))),
            session=chance.random() < 0.3,
        )
        for node_id in broker_ids
    )
    registered = [node_id for node_id in ids if chance.random() < (1.0 if calm else 0.85)]
    if chance.random() < 0.1:
        registered.append(NodeId(chance.randrange(20, 30)))  # a ghost
    return ControllerState(
        id=ids[0],
        local=SupportedRanges(local),
        levels=levels,
        brokers=brokers,
        controllers=tuple(
            RegisteredController(
                node_id, SupportedRanges(local if calm else _ranges(chance, release))
            )
            for node_id in registered
        ),
        quorum=tuple(ids) if chance.random() < 0.8 else (),
        cluster="a cluster",
        kraft_version=FeatureLevel(chance.choice((0, 0, 1))),
        voters_support_kraft=chance.random() < 0.8,
        migration=chance.choice([*[ZkMigrationState.NONE] * 6, *ZkMigrationState]),
        migration_enabled=chance.random() < 0.5,
        listener=chance.choice(("PLAINTEXT", "PLAINTEXT", "INTERNAL")),
        min_insync=MinInsync(
            chance.choice((1, 2)),
            chance.random() < 0.5,
            tuple(NodeId(node_id) for node_id in broker_ids if chance.random() < 0.3),
        ),
    )


def _levels(
    local: Ranges, newest: int, chance: Random, *, sloppy: bool
) -> dict[FeatureName, FeatureLevel]:
    levels: dict[FeatureName, FeatureLevel] = {}
    for name, (low, high) in local.items():
        if name == METADATA_VERSION:
            if chance.random() < 0.02:
                continue  # a log without a level
            top = min(high, newest)
            level = chance.randint(low, top) if chance.random() < 0.6 else top
        elif chance.random() < 0.5:
            level = chance.randint(low, max(low, min(high, 3)))
        else:
            continue
        if sloppy:
            level += chance.choice((-1, 0, 1, 20))
        levels[name] = FeatureLevel(level)
    names = list(levels)
    chance.shuffle(names)
    return {name: levels[name] for name in names}


def _update(state: ControllerState, chance: Random) -> UpdateRequest:
    names = [*state.local] * 5 + [METADATA_VERSION] * 12 + [KRAFT_VERSION] * 5 + [*STRANGE]
    some = chance.choice((0, 1, 1, 1, 1, 2, 2, 3, 5, 9))
    updates = tuple(_one_update(state, chance.choice(names), chance) for _ in range(some))
    return UpdateRequest(updates, dry_run=chance.random() < 0.2)


def _one_update(state: ControllerState, name: FeatureName, chance: Random) -> LevelUpdate:
    current = state.levels.get(name, FeatureLevel(0))
    low, high = state.local.of(name)
    newest = [*releases().values()][-1].levels[-1].level
    inside = [chance.randint(low, max(low, min(high, newest))) for _ in range(5)]
    near = (current - 1, current, current + 1, low, high)
    level = chance.choice((*inside, *near, 1))
    if chance.random() < 0.05:
        level = chance.choice((-1, -3, 0, low - 1, high + 1, 30000))
    level = max(-32768, min(level, 32767))
    fitting = UpgradeType.UPGRADE if level > current else UpgradeType.SAFE_DOWNGRADE
    kinds = (*[fitting] * 12, *UpgradeType)
    return LevelUpdate(name, FeatureLevel(level), chance.choice(kinds))


def _broker(state: ControllerState, chance: Random) -> BrokerRegistrationRequest:
    fresh = BrokerRegistrationRequest(
        NodeId(chance.randrange(12)),
        "a cluster" if chance.random() < 0.97 else "another",
        _uuid(chance),
        (),
        tuple(_uuid(chance) for _ in range(chance.choice((1, 1, 2)))),
        chance.choice((("PLAINTEXT",), ("PLAINTEXT", "INTERNAL"), ("INTERNAL",))),
        migrating=chance.random() < 0.15,
    )
    if state.brokers and chance.random() < 0.4:
        registered = chance.choice(state.brokers)
        again = registered.incarnation if chance.random() < 0.4 else fresh.incarnation
        fresh = replace(fresh, id=registered.id, incarnation=again)
    return replace(
        fresh,
        features=_offered(state, chance),
        directories=_directories(state, fresh, chance),
    )


def _offered(state: ControllerState, chance: Random) -> tuple[Offered, ...]:
    calm = chance.random() < 0.5
    ranges = dict(state.local) if calm else _ranges(chance, chance.choice((*releases(),)))
    if chance.random() < 0.3:
        for name in chance.sample([*ranges], min(len(ranges), chance.choice((1, 2, 5)))):
            del ranges[name]
    offered = [(name, low, high) for name, (low, high) in ranges.items()]
    if offered and chance.random() < 0.05:
        offered.append((offered[0][0], chance.randrange(3), chance.randrange(30)))
    return tuple(offered)


def _directories(
    state: ControllerState, request: BrokerRegistrationRequest, chance: Random
) -> tuple[str, ...]:
    odd = chance.random()
    if odd < 0.06:
        return ()
    if odd < 0.12:
        reserved = urlsafe_b64encode(chance.randrange(110).to_bytes(16)).decode().rstrip("=")
        return (*request.directories, reserved)
    if odd < 0.18:
        return (*request.directories, request.directories[0])
    others = [directory for broker in state.brokers for directory in broker.directories]
    if others and odd < 0.3:
        return (*request.directories, chance.choice(others))
    return request.directories
