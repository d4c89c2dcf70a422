"""Draws the observers' state diagrams in the docs from their transition tables.

Usage: ``python -m scripts.draw_states`` (writes the documents). ``tests/streams`` compares the
documents with the tables.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from featurewatch.streams.kraft.observer import states as observer
from featurewatch.streams.zookeeper.watcher import states as watcher

ROOT: Final = Path(__file__).resolve().parent.parent
BEGIN: Final = "<!-- states: written by python -m scripts.draw_states -->\n"
END: Final = "<!-- end of states -->"

State = TypeVar("State", bound=StrEnum)
Trigger = TypeVar("Trigger", bound=StrEnum)


def diagram(start: State, transitions: Mapping[tuple[State, Trigger], State]) -> str:
    """A Mermaid state diagram; triggers with the same two states share an arrow."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (before, trigger), after in transitions.items():
        arrows.setdefault((before, after), []).append(trigger)
    lines = [
        f"{before} --> {after}: {', '.join(names)}" for (before, after), names in arrows.items()
    ]
    body = "\n".join(f"    {line}" for line in [f"[*] --> {start}", *lines])
    return f"```mermaid\nstateDiagram-v2\n{body}\n```\n"


DIAGRAMS: Final = {
    ROOT / "docs" / "observer.md": diagram(observer.ObserverState.SEEKING, observer.TRANSITIONS),
    ROOT / "docs" / "zookeeper.md": diagram(watcher.WatcherState.OFFLINE, watcher.TRANSITIONS),
}
"""The diagram of each document."""


def with_diagram(text: str, drawn: str) -> str:
    """The document with ``drawn`` between its markers; raises `ValueError` if it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no {BEGIN.strip()} … {END}")
    return before + BEGIN + drawn + END + after


def main() -> None:
    """Write the diagrams into the documents."""
    for path, drawn in DIAGRAMS.items():
        path.write_text(with_diagram(path.read_text(), drawn))


if __name__ == "__main__":
    main()
