"""What clients asked and were told, held against what was written: an account that must balance.

It shares no code with the controller: forms are read with the standard library, and the effect of a
request is worked out anew.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from featurewatch.reference.machines.requests import (
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
    """The levels in a features znode, in whichever form."""
    whole = json.loads(data)
    features = whole["data"]["features"] if "data" in whole else whole["features"]
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
    """A request to a process, and the answer if one came; places are transaction numbers."""

    process: object
    request: Request
    asked: int
    response: Response | None = None
    answered: float = inf

    @property
    def certain(self) -> bool:
        """Success was told."""
        answer = self.response
        if not isinstance(answer, UpdateResponse) or answer.unknown or self._dry:
            return False
        some = any(item.error is ErrorCode.NONE for item in answer.results)
        return answer.error is ErrorCode.NONE and (some or not answer.results)

    @property
    def possible(self) -> bool:
        """Nothing was told, or that nobody knows."""
        if isinstance(self.request, ApiVersions) or self._dry:
            return False
        return self.response is None or (
            isinstance(self.response, UpdateResponse) and self.response.unknown
        )

    @property
    def _dry(self) -> bool:
        return isinstance(self.request, UpdateFeatures) and self.request.validate_only

    def explains(self, written: Written) -> bool:
        """Whether this request can have caused this change, by what was asked and told."""
        if self.process is not written.process or written.zxid <= self.asked:
            return False
        if not (self.possible or (self.certain and written.zxid <= self.answered)):
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
        partly = self.possible and _per_item(self.request)
        return partly or all(
            written.after.get(name) == target for name, (target, _) in targets.items()
        )


def balance(claims: Sequence[Claim], written: Sequence[Written]) -> str | None:
    """What does not balance: a change that nobody caused, or a success without its change."""
    by_claim = [[n for n, each in enumerate(written) if claim.explains(each)] for claim in claims]
    causes: dict[int, list[int]] = {n: [] for n in range(len(written))}
    for number, changes in enumerate(by_claim):
        for change in changes:
            causes[change].append(number)
    unmatched = _unmatched(causes)
    if unmatched is not None:
        return f"nobody caused {written[unmatched]}"
    unmatched = _unmatched({n: by_claim[n] for n, claim in enumerate(claims) if claim.certain})
    return None if unmatched is None else f"success without its change: {claims[unmatched]}"


def _unmatched(partners: Mapping[int, Sequence[int]]) -> int | None:
    """One that finds no partner of its own, by augmenting paths; None: each does."""
    taken: dict[int, int] = {}

    def find(one: int, tried: set[int]) -> bool:
        for partner in partners[one]:
            if partner not in tried:
                tried.add(partner)
                if partner not in taken or find(taken[partner], tried):
                    taken[partner] = one
                    return True
        return False

    return next((one for one in partners if not find(one, set())), None)


def _targets(request: Request) -> dict[str, tuple[int | None, bool]]:
    """By feature: the level asked for (None: gone), and whether it may go down."""
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
