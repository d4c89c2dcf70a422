"""The file of a plan: what comes back, and what is refused."""

import pytest

from featurewatch.monitor.upgrade import PlanError, parse_plan, plan_text
from featurewatch.monitor.upgrade.plan_file import MAX_BYTES
from tests.monitor.upgrade.states import kraft, planned

PLAN = planned(kraft(dict.fromkeys((1, 2, 3), "3.9"), {4: "3.9"}), "4.4")
TEXT = plan_text(PLAN)


def test_a_plan_comes_back_as_it_was_written() -> None:
    """All but the checks, which are those of its moment."""
    read = parse_plan(TEXT.encode(), "plan.yaml")
    assert (read.edited, read.plan.steps) == (False, PLAN.steps)
    fields = ("cluster", "version", "mode", "releases", "target", "soak_ms", "before", "after")
    for name in (*fields, "controllers", "brokers", "made_ms"):
        assert getattr(read.plan, name) == getattr(PLAN, name), name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("soak_hours: 24.0", "soak_hours: 0.5"),
        ("- 4\n", "- 5\n"),
        ("target: '4.4'", "target: '4.3'"),
    ],
)
def test_a_plan_edited_by_hand_is_noticed(old: str, new: str) -> None:
    """The digest is that of the content; comments and layout do not count."""
    assert parse_plan(TEXT.replace(old, new, 1).encode(), "plan.yaml").edited
    assert not parse_plan(f"# mine\n{TEXT}\n".encode(), "plan.yaml").edited


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is no plan"),
        (b"a: 1", "is no plan"),
        (b"- 1", "is no plan"),
        (b"\xff\xfe", "is not text"),
        (b"a: [", "is not YAML"),
        (b"x" * (MAX_BYTES + 1), "more than 4,000,000 bytes"),
        (TEXT.replace("format: 1", "format: 2").encode(), "has format 2 of featurewatch 0.1.0"),
        (TEXT.replace("format: 1", "format: true").encode(), "has format True"),
        (TEXT.replace("mode: kraft", "mode: raft").encode(), "'raft' is not a valid Mode"),
        (TEXT.replace("- 4\n", "- four\n", 1).encode(), "brokers are not ids"),
        (TEXT.replace("- 4\n", "- -4\n", 1).encode(), "brokers are not ids"),
        (TEXT.replace("metadata.version: 33", "metadata.version: 99999", 1).encode(), "a level is"),
        (TEXT.replace("soak_hours: 24.0", "soak_hours: .nan", 1).encode(), "soak_hours"),
        (TEXT.replace("soak_hours: 24.0", "soak_hours: 1e99", 1).encode(), "soak_hours"),
        (TEXT.replace("made_at: '", "made_at: 'x", 1).encode(), "isoformat"),
        (b"format: 1\nsteps: " + b"[" * 5000, "nested too deep"),
    ],
)  # fmt: skip
def test_other_content_is_refused_in_one_line(content: bytes, reason: str) -> None:
    """Of another program, another featurewatch, or damaged."""
    with pytest.raises(PlanError, match=reason) as raised:
        parse_plan(content, "plan.yaml")
    assert "\n" not in str(raised.value)
