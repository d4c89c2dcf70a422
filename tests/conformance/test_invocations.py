"""How many invocations are compared with Kafka's tools byte for byte; the page has the numbers."""

from pathlib import Path

from tests.conformance.partition_tools import election_lines, reassign_lines
from tests.conformance.quorum_tool import lines as quorum
from tests.conformance.topics_tool import lines as topics
from tests.paths import ROOT


def test_the_page_counts_the_invocations() -> None:
    """At least 150 on each release, the wrong ones included."""
    of_topics = sum(
        map(len, (topics.CREATED, topics.REFUSED, topics.SHOWN, topics.ALTERED, topics.ENDED))
    )
    of_reassignments = len(reassign_lines.invocations(Path()))
    of_elections = len(election_lines.KINDS) * len(election_lines.invocations(Path(), "t"))
    assert of_topics + of_reassignments + of_elections >= 150
    text = " ".join((ROOT / "docs" / "how-to" / "admin.md").read_text().split())
    assert (
        f"{of_topics} invocations of `kafka-topics`, {of_reassignments} of "
        f"`kafka-reassign-partitions` and {of_elections} of `kafka-leader-election`"
    ) in text


def test_the_page_of_the_quorum_counts_its_invocations() -> None:
    """At least 40 on each release."""
    count = quorum.invocation_count()
    assert count >= 40
    text = (ROOT / "docs" / "how-to" / "quorum.md").read_text()
    assert f"{count} invocations of `kafka-metadata-quorum`" in text
