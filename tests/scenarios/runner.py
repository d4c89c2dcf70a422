"""Plays a scenario: an aligned text table with an event and what must follow from it a line.

A row is ``event | expected``; ``#`` begins a comment. What is expected is everything that the event
leads to, in any order, separated by commas:

- ``mv 19>21``: a change of a level (``~`` before it: found by comparing, not seen to happen),
- ``+incompatible-node broker-2``: an alert fires, ``-...``: it ends, ``*...``: it says more,
- ``rev 3``: a snapshot was made, and this is the revision; without it there must not be one,
- ``ready`` or ``waiting``, ``epoch 3``, ``by zookeeper`` (who is believed): what holds after it
  (said only where it matters).

Events, with levels as ``mv=21`` and nodes as ``b1`` (broker) or ``c1`` (controller):

- ``commit 10 mv=21 kraft=1 b1:3.9 +b1 -b1 gone:b1 unreadable unknown``: ``+b1`` unfences, ``-b1``
  fences, ``unknown`` is a record that no release has;
  ``m1:3.9`` registers as migrating, and ``migration=2`` is the migration's state,
- ``chunk 20.0 ...`` and ``chunk 20.1! ...``: part 0 of snapshot 20, and its last part,
- ``gap 5-9``, ``reset 5-9``, ``catching-up 9``, ``following 9``, ``following 9 behind``,
  ``stalled``, ``silent``, each with ``api`` for the source of answers, ``zk`` for ZooKeeper's,
- ``answer b1:4.3 @50 mv=25``, ``old-answer ...`` (below version 4), ``mute b1``, ``unlisted b1``,
- ``read``, ``znode``, ``gone``: see `tests.scenarios.zookeeper`,
- ``disagree mv``, ``agree mv``, ``poison`` (a message that is no event),
- ``wait 60``: this many seconds pass,
- ``again 2``: the last two events are taken in again, ``crash``: the state is loaded from its rows.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from featurewatch.monitor.rows import rows_of_step
from featurewatch.monitor.step import StepResult, step_unreadable
from featurewatch.streams.events import Event, RecordJson, SourceState
from featurewatch.streams.types import Role
from featurewatch.tables.image.sources import MessagePosition
from tests.scenarios import zookeeper
from tests.simulation import records as r
from tests.simulation.auditor import Auditor
from tests.simulation.engine import Engine
from tests.simulation.records import GV, KV, MV, TV
from tests.simulation.world import RELEASES

SCENARIO_FILES = sorted(Path(__file__).parent.glob("*.txt"))
NAMES = {
    "mv": MV,
    "kraft": KV,
    "tv": TV,
    "group": GV,
    "elr": "eligible.leader.replicas.version",
    "share": "share.version",
    "streams": "streams.version",
}
SHORT = {name: short for short, name in NAMES.items()}


def _record(word: str) -> RecordJson:
    if word == "unreadable":
        return r.unreadable()
    if word == "unknown":
        return r.unknown_record()
    if word.startswith("gone:b"):
        return r.unregister(int(word[6:]))
    if word[0] in "+-":
        return r.unfence(int(word[2:])) if word[0] == "+" else r.fence(int(word[2:]))
    name, sep, value = word.partition("=")
    if sep:
        if name == "migration":
            return r.migration_state(int(value))
        return r.kraft_version(int(value)) if name == "kraft" else r.level(NAMES[name], int(value))
    node, _, release = word.partition(":")
    if node[0] == "m":
        return r.register(int(node[1:]), RELEASES[release], migrating=True)
    act = r.register if node[0] == "b" else r.register_controller
    return act(int(node[1:]), RELEASES[release])


def _role(node: str) -> Role:
    return Role.BROKER if node[0] == "b" else Role.CONTROLLER


class Scenario:
    """A table being played."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.engine.auditor = Auditor()
        self._now_ms = 100_000
        self._place = 0
        self.taken: list[Event] = []

    def play(self, text: str) -> None:
        """Play all rows; the first that leads to something else fails with its number and text."""
        for number, line in enumerate(text.splitlines(), start=1):
            row = line.partition("#")[0].strip()
            if row:
                event, _, expected = row.partition("|")
                self._row(event.strip(), expected.strip(), f"line {number}: {line}")

    def _row(self, event: str, expected: str, where: str) -> None:
        self._now_ms += 1000
        outcomes = [*self._outcomes(*event.split())]
        wanted = {part.strip() for part in expected.split(",") if part.strip()}
        image = self.engine.state.image
        ready = "ready" if image.ready else "waiting"
        holds = {ready, f"epoch {image.features.epoch}", f"by {image.authority}"}
        result_words = {word for outcome in outcomes for word in _words(outcome)}
        result_words |= wanted & holds
        text = f"{', '.join(sorted(result_words))}; {', '.join(sorted(holds))}"
        assert result_words == wanted, f"{where}\n  led to: {text}"

    def _outcomes(self, verb: str, *words: str) -> Iterator[StepResult]:
        if verb == "again":
            for event in self.taken[-int(words[0]) :]:
                yield self.engine.apply(event)
        elif verb == "crash":
            self.engine.restart()
        elif verb == "poison":
            yield self._poison()
        elif verb == "wait":
            self._now_ms += int(words[0]) * 1000
        elif verb in ("read", "znode", "gone"):
            for event in zookeeper.events(verb, words, NAMES, self._now_ms):
                self.taken.append(event)
                yield self.engine.apply(event)
        else:
            event = _EVENTS[verb](self, *words)
            self.taken.append(event)
            yield self.engine.apply(event)

    def _poison(self) -> StepResult:
        before = self.engine.state
        outcome = step_unreadable(
            before, "partition 0 offset 7", "not JSON", MessagePosition("topic", 7, self._now_ms)
        )
        assert self.engine.auditor is not None
        self.engine.auditor.check(before, outcome, None)
        self.engine.rows.update((k, v) for k, v in rows_of_step(before, outcome) if v is not None)
        self.engine.state = outcome.state
        return outcome

    # -- events --------------------------------------------------------------------------------

    def commit(self, last: str, *words: str) -> Event:
        """``commit 10 mv=21``."""
        self._place = int(last)
        return r.commit(self._place, *map(_record, words))

    def chunk(self, place: str, *words: str) -> Event:
        """``chunk 20.1! b1:3.9``."""
        end, index = place.rstrip("!").split(".")
        if place.endswith("!"):
            self._place = int(end) - 1
        return r.chunk(int(end), int(index), *map(_record, words), last=place.endswith("!"))

    def lost(self, span: str, *, reset: bool) -> Event:
        """``gap 5-9``."""
        first, last = span.split("-")
        return r.gap(int(first), int(last), reset=reset, seen_ms=self._now_ms)

    def status(self, state: SourceState, *words: str) -> Event:
        """``following 9``, ``stalled api``."""
        offset = int(words[0]) if words and words[0].isdigit() else self._place
        sources = {"api": "api-versions", "zk": "zookeeper"}
        source = next((sources[word] for word in words if word in sources), "kraft")
        behind = 9 if "behind" in words or state is SourceState.CATCHING_UP else 0
        return r.status(state, offset, source=source, behind=behind, seen_ms=self._now_ms)

    def answer(self, who: str, epoch: str, *words: str, complete: bool = True) -> Event:
        """``answer b1:4.3 @50 mv=25``."""
        node, release = who.split(":")
        levels = {NAMES[k]: int(v) for k, v in (word.split("=") for word in words)}
        return r.answer(
            int(node[1:]), RELEASES[release], levels, int(epoch[1:]), self._now_ms,
            role=_role(node), complete=complete,
        )  # fmt: skip

    def silence(self, node: str, *, gone: bool) -> Event:
        """``mute b1``."""
        return r.silent(int(node[1:]), self._now_ms, gone=gone, role=_role(node))

    def views(self, name: str, count: int) -> Event:
        """``disagree mv``."""
        return r.disagreement(NAMES[name], count, self._now_ms)


_EVENTS: dict[str, Callable[..., Event]] = {
    "commit": Scenario.commit,
    "chunk": Scenario.chunk,
    "gap": lambda play, span: play.lost(span, reset=False),
    "reset": lambda play, span: play.lost(span, reset=True),
    "catching-up": lambda play, *words: play.status(SourceState.CATCHING_UP, *words),
    "following": lambda play, *words: play.status(SourceState.FOLLOWING, *words),
    "stalled": lambda play, *words: play.status(SourceState.STALLED, *words),
    "silent": lambda play, *words: play.status(SourceState.SILENT, *words),
    "answer": Scenario.answer,
    "old-answer": lambda play, *words: play.answer(*words, complete=False),
    "mute": lambda play, node: play.silence(node, gone=False),
    "unlisted": lambda play, node: play.silence(node, gone=True),
    "disagree": lambda play, name: play.views(name, 2),
    "agree": lambda play, name: play.views(name, 0),
}


def _words(outcome: StepResult) -> Iterator[str]:
    for change in outcome.changes:
        mark = "~" if change.from_snapshot else ""
        yield f"{mark}{SHORT[change.feature]} {change.before}>{change.after}"
    if outcome.snapshot is not None:
        yield f"rev {outcome.snapshot.revision}"
    for alert in outcome.alerts:
        is_repeated = alert.state == "firing" and alert.since_ms != alert.at_ms
        sign = "-" if alert.state == "resolved" else "*" if is_repeated else "+"
        subject = alert.subject
        node = f"{subject['role']}-{subject['node']}" if "node" in subject else ""
        what = SHORT.get(str(subject.get("feature", "")), "")
        about = (subject.get(name) for name in ("source", "record", "znode"))
        rest = next((str(name) for name in about if name), "")
        yield re.sub(r" +", " ", f"{sign}{alert.rule} {node} {what} {rest}").strip()
