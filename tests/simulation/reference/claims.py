"""Compares the requests and responses of clients with the written changes; both must balance.

The module shares no code with the controller: it parses the forms with the standard library and
computes the effect of a request independently.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from featurewatch.reference.zookeeper.machines.requests import (
    ApiVersions,
    DeleteFeatures,
    EarlyUpdate,
    ErrorCode,
    LaterUpdate,
    ReleasedUpdate,
    Request,
    Response,
    Update,
    UpdateFeatures,
    UpdateResponse,
)

Levels = dict[str, int]


def levels_in(data: bytes) -> Levels:
    """The levels in a features znode of any form."""
    content = json.loads(data)
    features = content["data"]["features"] if "data" in content else content["features"]
    keys = ("version", "version_level", "max_version_level")
    return {
        name: next(entry[key] for key in keys if key in entry) for name, entry in features.items()
    }


@dataclass(frozen=True, slots=True)
class Written:
    """A change of the features znode by a process."""

    zxid: int
    process: object
    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(slots=True)
class Claim:
    """A request to a process and its response, if any; points in time are transaction numbers."""

    process: object
    request: Request
    requested_at: int
    response: Response | None = None
    responded_at: float = inf

    @property
    def has_succeeded(self) -> bool:
        """Whether the response reports a success."""
        response = self.response
        if not isinstance(response, UpdateResponse) or response.unknown or self._dry:
            return False
        has_valid_item = any(item.error is ErrorCode.NONE for item in response.results)
        return response.error is ErrorCode.NONE and (has_valid_item or not response.results)

    @property
    def is_uncertain(self) -> bool:
        """Whether there is no response, or one that reports an unknown outcome."""
        if isinstance(self.request, ApiVersions) or self._dry:
            return False
        return self.response is None or (
            isinstance(self.response, UpdateResponse) and self.response.unknown
        )

    @property
    def _dry(self) -> bool:
        return isinstance(self.request, UpdateFeatures) and self.request.validate_only

    def explains(self, written: Written) -> bool:
        """Whether this request can have caused this change."""
        if self.process is not written.process or written.zxid <= self.requested_at:
            return False
        if not (self.is_uncertain or (self.has_succeeded and written.zxid <= self.responded_at)):
            return False
        targets = _targets(self.request)
        if isinstance(self.response, UpdateResponse) and self.response.results:
            good = {item.feature for item in self.response.results if not item.error}
            targets = {name: target for name, target in targets.items() if name in good}
        names = written.before.keys() | written.after.keys()
        changed = {
            name: written.after.get(name)
            for name in names
            if written.before.get(name) != written.after.get(name)
        }
        if not all(
            name in targets and _allowed(written.before.get(name), *targets[name], level)
            for name, level in changed.items()
        ):
            return False
        partly = self.is_uncertain and _per_item(self.request)
        return partly or all(
            written.after.get(name) == target for name, (target, _) in targets.items()
        )


def balance(claims: Sequence[Claim], written: Sequence[Written]) -> str | None:
    """Describes what does not balance: a change without a cause, or a success without its change;
    else None."""
    by_claim = [
        [n for n, change in enumerate(written) if claim.explains(change)] for claim in claims
    ]
    causes: dict[int, list[int]] = {n: [] for n in range(len(written))}
    for number, changes in enumerate(by_claim):
        for change in changes:
            causes[change].append(number)
    unmatched = _unmatched(causes)
    if unmatched is not None:
        return f"nobody caused {written[unmatched]}"
    unmatched = _unmatched(
        {n: by_claim[n] for n, claim in enumerate(claims) if claim.has_succeeded}
    )
    return None if unmatched is None else f"success without its change: {claims[unmatched]}"


def _unmatched(partners: Mapping[int, Sequence[int]]) -> int | None:
    """An item without its own partner, found by augmenting paths; None if each has one."""
    owner_of: dict[int, int] = {}

    def find(item: int, visited: set[int]) -> bool:
        for partner in partners[item]:
            if partner not in visited:
                visited.add(partner)
                if partner not in owner_of or find(owner_of[partner], visited):
                    owner_of[partner] = item
                    return True
        return False

    return next((item for item in partners if not find(item, set())), None)


def _targets(request: Request) -> dict[str, tuple[int | None, bool]]:
    """Feature → the requested level (None: deleted), and whether it may be lowered."""
    if isinstance(request, DeleteFeatures):
        return dict.fromkeys(request.names, (None, True))
    if not isinstance(request, UpdateFeatures):
        return {}
    return dict(_target(update, request.version) for update in request.updates)


def _target(update: Update, version: int) -> tuple[str, tuple[int | None, bool]]:
    match update:
        case EarlyUpdate(name, level, kind):
            return name, (None, True) if kind == 2 else (level, kind == 1)
        case LaterUpdate(name, level, allow):
            return name, (level if level >= 1 else None, allow)
        case ReleasedUpdate(name, level, allow, kind):
            allowed = allow if version == 0 else kind in (2, 3)
            return name, (level if level >= 1 else None, allowed)


def _allowed(before: int | None, target: int | None, down: bool, level: int | None) -> bool:
    lower = before is not None and (level is None or level < before)
    return level == target and (down or not lower)


def _per_item(request: Request) -> bool:
    return (
        isinstance(request, UpdateFeatures)
        and request.version < 2
        and any(isinstance(update, ReleasedUpdate) for update in request.updates)
    )
