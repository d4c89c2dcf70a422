"""Random requests of clients, valid and invalid."""

from collections.abc import Mapping, Sequence
from random import Random

from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.requests import (
    ApiVersions,
    DeleteFeatures,
    EarlyUpdate,
    LaterUpdate,
    ReleasedUpdate,
    Request,
    Update,
    UpdateFeatures,
)


def random_request(
    random: Random, dialect: Dialect, features: Sequence[str], levels: Mapping[str, int]
) -> Request:
    """A request in the dialect's form; most change a level, some are invalid."""
    if random.random() < 0.1:
        return ApiVersions(random.choice((0, 3, 4)))
    names = random.sample([*features, *features, *features, "delta"], random.choice((1, 1, 2)))
    names = [*dict.fromkeys(names)]
    timeout_ms = random.choice((60_000, 60_000, 60_000, 300, 0))
    if dialect.has_delete and random.random() < 0.25:
        return DeleteFeatures(tuple(names), timeout_ms)
    return UpdateFeatures(
        tuple(_update(random, dialect, name, levels.get(name, 1)) for name in names),
        timeout_ms,
        version=random.choice((0, 1, 1, 2)) if dialect.per_item else 0,
        validate_only=dialect.per_item and random.random() < 0.1,
    )


def single_update(dialect: Dialect, name: str, level: int, *, down: bool) -> UpdateFeatures:
    """An update of one feature, with or without permission to lower it."""
    update: Update = LaterUpdate(name, level, down)
    if dialect.per_item:
        update = ReleasedUpdate(name, level, down, 2 if down else 1)
    elif dialect.has_delete:
        update = EarlyUpdate(name, level, int(down))
    return UpdateFeatures((update,))


def _update(random: Random, dialect: Dialect, name: str, now: int) -> Update:
    level = max(0, now + random.choice((-2, -1, -1, 0, 1, 1, 2)))
    down = random.random() < 0.5
    if dialect.per_item:
        kind = random.choice((2, 2, 3)) if down else random.choice((1, 1, 1, 1, 0))
        return ReleasedUpdate(name, level, down, kind)
    if dialect.has_delete:
        return EarlyUpdate(name, level, random.choice((1, 1, 2)) if down else 0)
    return LaterUpdate(name, level, down)
