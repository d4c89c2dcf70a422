"""Completion: what may follow on a line, from a snapshot of the cluster's names."""

import time
from collections.abc import Iterable
from pathlib import Path

import click
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from featurewatch.cli.commands.shell.catalogue import OFFERED, command_of, shape_of
from featurewatch.cli.commands.shell.cluster_names import (
    MAX_TOPICS,
    ClusterNames,
    FeatureLevels,
    bounded_names,
)
from featurewatch.cli.commands.shell.completion import MAX_CANDIDATES, complete
from featurewatch.cli.commands.shell.option_values import COMPLETED_OPTIONS
from featurewatch.cli.commands.shell.words import arguments_of, split
from tests.cli.command_tree import commands

NAMES = bounded_names(
    ["orders", "orders.eu", "payments", "__consumer_offsets"],
    [(1, "kafka-1:9092"), (2, "kafka-2:9092"), (12, "kafka-12:9092")],
    [FeatureLevels("metadata.version", 7, 29, 27), FeatureLevels("group.version", 0, 1, None)],
)
CASES: dict[str, list[str]] = {
    "": [*OFFERED, "help", "exit"],
    "to": ["topics"],
    "featurewatch to": ["topics"],
    "topics ": ["create", "alter", "delete", "describe", "list"],
    "topics de": ["delete", "describe"],
    "topics nonsense ": [],
    "nonsense ": [],
    "up ": [],
    "help t": ["topics"],
    "help topics l": ["list"],
    "topics list --ex": ["--exclude-internal"],
    "topics list --exclude-internal --ex": [],
    "topics list --boot": [],
    "topics list --command-config /": [],
    "topics describe --topic ord": ["orders", "orders.eu"],
    "topics describe --topic=ord": ["orders", "orders.eu"],
    "topics describe --topic 'ord": ["orders", "orders.eu"],
    "topics describe --topic ord --j": ["--json"],
    "topics create --topic ord": [],
    "topics list --compat ": ["3.9", "4.3", "4.4"],
    "features --json describe --node-id 1": ["1", "12"],
    "reassign generate --broker-list ": ["1", "2", "12"],
    "reassign generate --broker-list 1,2,": ["12"],
    "features disable --feature m": ["metadata.version"],
    "features upgrade --feature m": ["metadata.version="],
    "features upgrade --feature metadata.version=2": [str(level) for level in range(29, 19, -1)],
    "features upgrade --feature metadata.version=28 --feature gr": ["group.version="],
    "features upgrade --feature=group.version=": ["1", "0"],
    "topics list # comment ": [],
}


@pytest.mark.parametrize("line", CASES)
def test_a_line_has_candidates(line: str) -> None:
    """Commands, options, choices, topics, brokers, features and levels."""
    found = [candidate.display for candidate in complete(line, NAMES)]
    expected = CASES[line]
    if line == "topics list --command-config /":
        expected = [entry for entry in found if (Path("/") / entry).exists()]
        assert expected
    assert found == expected


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        ("topics describe --topic ord", "topics describe --topic orders"),
        ("topics describe --topic=ord", "topics describe --topic=orders"),
        ("topics describe --topic 'ord", "topics describe --topic orders"),
        ("reassign generate --broker-list 1,", "reassign generate --broker-list 1,2"),
        (
            "features upgrade --feature metadata.version=2",
            "features upgrade --feature metadata.version=29",
        ),
    ],
)
def test_a_candidate_replaces_the_word(line: str, accepted: str) -> None:
    """What was typed before the word stays."""
    candidate = complete(line, NAMES)[0]
    assert line[: candidate.start] + candidate.text == accepted


WORDS = st.sampled_from(
    [
        *OFFERED, "help", "exit", "featurewatch", "create", "describe", "list", "upgrade",
        "execute", "--topic", "--topic=", "--feature", "--feature=metadata.version=",
        "--broker-list", "1,2,",
        "--json", "--node-id", "--compat", "--", "-", "=", "'", '"', "\\", "#", "or", "\x1b[2J", "",
    ]
)  # fmt: skip
LINES = st.lists(WORDS | st.text(max_size=5), max_size=6).map(" ".join) | st.text(max_size=40)
WIRE_NAMES = st.text(max_size=12) | st.sampled_from(["orders", "a.b", "<b>&amp;</b>", "\x1b[2J"])


@st.composite
def cluster_names(draw: st.DrawFn) -> ClusterNames:
    """The names that a node may send: anything."""
    numbers = st.integers(-(2**31), 2**31 - 1)
    features = st.builds(FeatureLevels, WIRE_NAMES, numbers, numbers, st.none() | numbers)
    return bounded_names(
        draw(st.lists(WIRE_NAMES, max_size=8)),
        draw(st.lists(st.tuples(numbers, WIRE_NAMES), max_size=4)),
        draw(st.lists(features, max_size=4)),
    )


@pytest.mark.fuzz
@example("topics describe --topic", NAMES)
@given(LINES, cluster_names())
@settings(max_examples=300, deadline=None)
def test_any_line_and_any_names_give_candidates_that_can_be_run(
    line: str, names: ClusterNames
) -> None:
    """Printable, bounded, and each is one word that continues what was typed."""
    candidates = complete(line, names)
    assert len(candidates) <= MAX_CANDIDATES
    words, _, is_ended, _ = split(line)
    typed = "" if is_ended or not words else words[-1].text
    for candidate in candidates:
        assert candidate.text
        assert (candidate.display + candidate.note).isprintable()
        (word,) = split(candidate.text).words
        assert word.text.startswith(typed)
        assert line[: candidate.start] == line[: len(line) if is_ended else words[-1].start]


@given(cluster_names(), st.text(max_size=3))
def test_names_that_cannot_be_typed_are_left_out(names: ClusterNames, prefix: str) -> None:
    """What stays is in order, once each, and holds nothing that a terminal obeys."""
    for kept in (names.topics, [item.name for item in names.features]):
        assert list(kept) == sorted(set(kept))
        assert all(name.isascii() and name.isprintable() and " " not in name for name in kept)
    found = [item.display for item in complete(f"topics describe --topic {prefix!r}", names)]
    assert all(name in names.topics for name in found)


def test_a_cluster_of_200_000_topics_is_completed_while_typing() -> None:
    """A lookup looks at what it shows; more topics than the bound are left out."""
    topics: Iterable[str] = (f"topic-{number:06}" for number in range(MAX_TOPICS + 10))
    names = bounded_names(topics, (), ())
    assert len(names.topics) == MAX_TOPICS
    complete("topics describe --topic x", names)  # imports the command
    begin = time.perf_counter()
    for _ in range(100):
        candidates = complete("topics describe --topic topic-19", names)
    assert (time.perf_counter() - begin) / 100 < 0.1
    assert len(candidates) == MAX_CANDIDATES
    assert candidates[0].display == "topic-190000"


def test_the_shell_offers_the_commands_that_name_a_cluster() -> None:
    """Each command with ``--bootstrap-server`` is offered, with its group, and no other is."""
    flags = {"--bootstrap-server", "--bootstrap-controller"}
    named = {
        path[0]
        for path, command in commands()
        if flags & {flag for item in command.params for flag in item.opts}
    }
    assert set(OFFERED) == named - {"shell"}


def test_each_completed_option_is_one_of_a_command() -> None:
    """A renamed option, or another metavar, would silently lose its completion."""
    options = {
        (item.opts[0], item.metavar)
        for path, command in commands()
        if path[0] in OFFERED
        for item in command.params
        if isinstance(item, click.Option)
    }
    assert options >= COMPLETED_OPTIONS


def test_every_candidate_of_the_tree_is_a_command() -> None:
    """What completes to a command is one that runs, and only such."""
    for path, command in commands():
        if path[0] not in OFFERED:
            assert command_of(path) is None
            assert shape_of(path) is None
            continue
        line = " ".join(path)
        assert path[-1] in [item.display for item in complete(line, ClusterNames())]
        assert command_of(path) is not None
        assert command_of(path).name == command.name  # type: ignore[union-attr]


def test_an_unknown_path_has_no_shape() -> None:
    """Nor has one below a command without sub-commands."""
    assert shape_of(("topics", "list", "x")) is None
    assert shape_of(("topics", "nonsense")) is None


def test_a_file_is_quoted_where_it_must(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden files only where a dot was typed; a name that a terminal would obey is left out."""
    monkeypatch.chdir(tmp_path)
    for name in ("a plan.json", ".hidden", "bad\x1bname"):
        Path(name).touch()
    Path("plans").mkdir()
    line = "reassign verify --reassignment-json-file "
    assert [item.display for item in complete(line, NAMES)] == ["a plan.json", "plans/"]
    (candidate,) = complete(f"{line}a", NAMES)
    assert arguments_of(line[: candidate.start] + candidate.text)[-1] == "a plan.json"
    assert [item.display for item in complete(f"{line}.h", NAMES)] == [".hidden"]
    assert complete(f"{line}nowhere/", NAMES) == []
