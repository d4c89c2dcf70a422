"""Planted bugs, each of which the auditors must notice: the patched object, the name, the
replacement, and a seed at which it was noticed, which is tried first."""

from collections.abc import Callable
from typing import Any

from featurewatch.reference.kraft.machines.controller import nodes, partitions
from featurewatch.reference.kraft.machines.controller.committed import Committed
from featurewatch.reference.kraft.machines.controller.controller import MetadataController
from featurewatch.reference.kraft.machines.controller.protocol import Proposed
from featurewatch.reference.kraft.machines.metadata import snapshots
from featurewatch.reference.kraft.machines.metadata.state_records import state_records
from featurewatch.reference.kraft.machines.protocol import Propose
from featurewatch.reference.kraft.machines.voter import Voter

_ON_PROPOSED = MetadataController._on_proposed
_ON_PROPOSE = Voter._on_propose
_DROP = MetadataController._drop
_ACTIVATE = MetadataController._activate
_RECORDS = state_records
_FENCE = nodes.fence


def _answers_at_once(self: MetadataController, event: Proposed) -> None:
    """Answers when the log has the records, committed or not."""
    _ON_PROPOSED(self, event)
    for group in self._leadership.appended if self._leadership else ():
        self._out += group.answers
        group.answers = []


def _appends_anything(self: Voter, propose: Propose) -> None:
    """Appends what another leadership decided, wherever the log ends."""
    _ON_PROPOSE(self, Propose(propose.token, propose.values))


def _keeps_its_state(self: MetadataController) -> None:
    """Leads again with the state that it had when it lost the leadership."""
    kept = self._leadership.state if self._leadership else None
    _DROP(self)
    if kept is not None:
        self.kept = kept  # type: ignore[attr-defined]


def _activates_with_kept(self: MetadataController) -> None:
    was_active = self.is_active
    _ACTIVATE(self)
    kept = getattr(self, "kept", None)
    if not was_active and self._leadership is not None and kept is not None:
        self._leadership.state = kept._replace(offset=self.committed.offset)


def _activates_early(self: MetadataController) -> None:
    """Decides before everything from before its epoch is applied."""
    if self._elected is not None:
        self._elected = type(self._elected)(self._elected.epoch, -1)
    _ACTIVATE(self)


def _without_producer_ids(state: Any) -> Any:
    """A snapshot that forgets which producer ids were given."""
    return (one for one in _RECORDS(state) if one.type != "PRODUCER_IDS_RECORD")


def _fences_alone(work: Any, broker: Any) -> None:
    """Fences a broker that still leads."""
    before = partitions.remove_broker
    partitions.remove_broker = lambda *_: None
    try:
        _FENCE(work, broker)
    finally:
        partitions.remove_broker = before


def _nothing(*_: object, **__: object) -> None:
    """Does nothing."""


def _answers_when_lost(self: MetadataController) -> None:
    """Answers what was appended and is not committed as if it was, when the leadership is lost."""
    for group in self._leadership.appended if self._leadership else ():
        self._out += group.answers
        group.operations = []
    _DROP(self)


def _unchanged(state: Any, _: Any) -> Any:
    """The state as it was, whatever the level cannot say."""
    return state


BUGS: dict[str, tuple[list[tuple[Any, str, Callable[..., Any]]], int]] = {
    "an answer does not wait for the commit": (
        [(MetadataController, "_on_proposed", _answers_at_once)],
        0,
    ),
    "a lost leadership answers as if it was kept": (
        [(MetadataController, "_drop", _answers_when_lost)],
        0,
    ),
    "a voter appends what an old leadership decided": (
        [(Voter, "_on_propose", _appends_anything)],
        4,
    ),
    "uncommitted state survives the leadership": (
        [
            (MetadataController, "_drop", _keeps_its_state),
            (MetadataController, "_activate", _activates_with_kept),
        ],
        30,
    ),
    "a leader decides before it has applied its log": (
        [(MetadataController, "_activate", _activates_early)],
        0,
    ),
    "a snapshot lacks the producer ids": (
        [(snapshots, "state_records", _without_producer_ids)],
        1,
    ),
    "a fenced broker leads on": ([(nodes, "fence", _fences_alone)], 2),
    "a level that is not supported is applied": ([(Committed, "_check", _nothing)], 81),
    "a downgrade forgets to rewrite the state": (
        [(snapshots, "rewritten", _unchanged)],
        5,
    ),
}
