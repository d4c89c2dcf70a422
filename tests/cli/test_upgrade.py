"""``featurewatch upgrade`` as it is called and shown; requests go to scripted nodes."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.app import app
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.upgrade import finalization, reading
from featurewatch.cli.commands.upgrade.reading import ReadState
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError, LogReading
from featurewatch.common.private_files import write_private
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import Plan, plan_text
from featurewatch.reference.zookeeper.machines.requests import ErrorCode, UpdateResponse
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterImage
from tests.admin.scripted import Node, ScriptedCluster
from tests.documents import checks
from tests.monitor.upgrade.states import (
    BEFORE,
    LIMITS,
    NOW_MS,
    PLAN,
    after,
    kraft,
    planned,
    rolled,
    timed,
    zookeeper,
)
from tests.simulation import records as r
from tests.simulation.records import MV

SOAKED = rolled(2, 3, 1, 4, 5)
LEVELS = [r.level(name, level) for name, level in PLAN.after.items()]
FINALIZED = after([timed(r.commit(95, *LEVELS), 100), r.following(96, seen_ms=NOW_MS)], SOAKED)
AT = ("--bootstrap-controller", "kafka:9093")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the plan; it is the time of the states."""
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)
    monkeypatch.setattr(finalization, "_LOG_S", 0.0)
    file = tmp_path / "plan.yaml"
    file.write_text(plan_text(PLAN))
    return file


def code(result: Result) -> int:
    """The exit code of the program, which turns a `UsageError` into 2."""
    return 2 if isinstance(result.exception, UsageError) else result.exit_code


def reason(result: Result) -> str:
    """The text of a `UsageError`."""
    return str(result.exception)


Finalize = Callable[..., tuple[Result, list[bool]]]


@pytest.fixture
def finalize(plan: Path, monkeypatch: pytest.MonkeyPatch) -> Finalize:
    """Finalizes with these states read one after the other; returns what was sent, too: whether
    each request was a dry run."""

    def run(
        *arguments: str,
        seen: Sequence[MonitorState | None] = (SOAKED, SOAKED, FINALIZED),
        script: Callable[[WireRequest], UpdateResponse | None] = lambda _: UpdateResponse(),
        next_controller: Node | None = None,
        file: Path = plan,
    ) -> tuple[Result, list[bool]]:
        states = iter(seen)

        def read(_: object) -> ReadState:
            state = next(states)
            if state is None:
                raise Exit(4)
            return ReadState(state, LIMITS)

        monkeypatch.setattr(finalization, "read_state", read)

        def answer(call: WireRequest) -> UpdateResponse | None:
            response = script(call)
            if response is not None and response.error is ErrorCode.NOT_CONTROLLER:
                cluster.controller = len(nodes)
            return response

        nodes = [node for node in (Node(script=answer), next_controller) if node is not None]
        with ScriptedCluster(*nodes) as cluster:
            at = ("--bootstrap-server", str(cluster.address()))
            command = ["upgrade", "finalize", "--plan", str(file), *at, *arguments]
            result = CliRunner().invoke(app, command)
            sent = [call.body.validate_only for call in cluster.nodes[1].updates]
        return result, sent

    return run


def refusing(
    text: str, *, dry_run: bool, code: ErrorCode = ErrorCode.INVALID_UPDATE_VERSION
) -> Callable[[WireRequest], UpdateResponse]:
    """A controller that refuses dry runs, or the others."""
    refusal = UpdateResponse(code, text)
    return lambda call: refusal if call.body.validate_only is dry_run else UpdateResponse()


def closing(call: WireRequest) -> UpdateResponse | None:
    """A controller that breaks off a real change."""
    return UpdateResponse() if call.body.validate_only else None


def test_levels_are_finalized_and_found_in_the_log(finalize: Finalize) -> None:
    """A dry run by the controller first, the request, and then what the log has."""
    result, sent = finalize("--yes")
    assert (result.exit_code, sent) == (0, [True, False])
    assert "The levels of Kafka 4.4 are finalized." in result.stdout
    assert "metadata.version: 21 (3.9-IV0) → 33 (4.4-IV2)  finalized" in result.stdout
    result, _ = finalize("--yes", "--json")
    document = json.loads(result.stdout)
    assert (document["outcome"], document["epoch"]) == ("finalized", 95)
    assert {level["state"] for level in document["levels"]} == {"finalized"}


def test_a_dry_run_sends_nothing_else(finalize: Finalize) -> None:
    """Checks and the controller's validation."""
    result, sent = finalize("--dry-run")
    assert (result.exit_code, sent) == (0, [True])
    assert "Nothing was changed." in result.stdout


def test_nothing_is_finalized_without_a_person(finalize: Finalize) -> None:
    """No terminal and no --yes."""
    result, sent = finalize()
    assert (code(result), sent) == (2, [])
    assert "pass --yes, or --dry-run" in reason(result)


def test_a_refusal_is_the_controllers(finalize: Finalize) -> None:
    """In the dry run, so that nothing else is sent; or of the request itself."""
    text = "Broker 5 does not support this feature."
    result, sent = finalize("--yes", script=refusing(text, dry_run=True))
    assert (result.exit_code, sent) == (3, [True])
    assert text in result.stdout
    states = (SOAKED, SOAKED, SOAKED)
    result, sent = finalize("--yes", script=refusing(text, dry_run=False), seen=states)
    assert (result.exit_code, sent) == (3, [True, False])
    assert "metadata.version: 21 (3.9-IV0) → 33 (4.4-IV2)  refused" in result.stdout


def test_what_was_not_answered_is_looked_for(finalize: Finalize) -> None:
    """In the log: it is there, or unknown; also if the log cannot be read any more."""
    result, sent = finalize("--yes", script=closing)
    assert (result.exit_code, sent) == (0, [True, False])
    assert "the request was sent and not answered" in result.stdout
    for last in (SOAKED, None):
        result, sent = finalize("--yes", script=closing, seen=(SOAKED, SOAKED, last))
        assert (result.exit_code, sent) == (4, [True, False])
        assert "not in the metadata log" in result.stdout
        assert "metadata.version: 21 (3.9-IV0) → 33 (4.4-IV2)  unknown" in result.stdout


def test_preconditions_are_checked_again_before_the_request(finalize: Finalize) -> None:
    """A node that went back while the person read the question; levels that another one changed."""
    back = after([timed(r.commit(94, r.fence(5)), 100)], SOAKED)
    old = after([timed(r.commit(95, r.register(5, {MV: (1, 21)}, fenced=False)), 100)], back)
    for then in (back, old):
        result, sent = finalize("--yes", seen=(SOAKED, then))
        assert (result.exit_code, sent) == (3, [True])
    other = after([timed(r.commit(94, r.level(MV, 22)), 100)], SOAKED)
    result, sent = finalize("--yes", seen=(SOAKED, other))
    assert (result.exit_code, sent) == (3, [True])
    assert "the levels changed meanwhile" in result.stdout


def test_two_people_finalize_at_once(finalize: Finalize) -> None:
    """The second finds nothing to do, or that the levels changed meanwhile."""
    result, sent = finalize("--yes", seen=(FINALIZED,))
    assert (result.exit_code, sent) == (0, [])
    assert "nothing to do: epoch 95 has them" in result.stdout
    result, sent = finalize("--yes", seen=(SOAKED, FINALIZED))
    assert (result.exit_code, sent) == (3, [True])


def test_the_controller_moves_in_the_middle(finalize: Finalize, tmp_path: Path) -> None:
    """Between dry run and request: the next one takes it. If there is none, nothing is sent."""
    moved = refusing("", dry_run=False, code=ErrorCode.NOT_CONTROLLER)
    after_it = Node()
    result, sent = finalize("--yes", script=moved, next_controller=after_it)
    assert (result.exit_code, sent) == (0, [True, False])
    assert [call.body.validate_only for call in after_it.updates] == [False]
    impatient = tmp_path / "impatient.properties"
    write_private(impatient, "default.api.timeout.ms=300\n")
    options = ("--yes", "--json", "--command-config", str(impatient))
    for dry_run, requests in ((True, 1), (False, 2)):
        moved = refusing("", dry_run=dry_run, code=ErrorCode.NOT_CONTROLLER)
        result, sent = finalize(*options, script=moved, seen=(SOAKED, SOAKED))
        document = json.loads(result.stdout)
        assert (result.exit_code, document["outcome"]) == (4, "not-sent")
        assert len(sent) >= requests
        (line,) = document["reasons"]
        assert line.startswith("no controller took the request: ")
        assert {level["state"] for level in document["levels"]} == {"not-sent"}


def test_a_dry_run_that_is_not_answered(finalize: Finalize) -> None:
    """Nothing is changed, and it says so."""
    result, sent = finalize("--yes", script=lambda _: None)
    assert (result.exit_code, set(sent)) == (4, {True})
    assert "no controller took the request: " in result.stdout
    assert "Nothing was sent, nothing is changed." in result.stdout


def test_a_soak_that_is_not_over(finalize: Finalize) -> None:
    """It is in the way, unless a person accepts that; only some checks can be accepted."""
    state = rolled(2, 3, 1, 4, 5, hours=99)
    result, sent = finalize("--yes", seen=(state,))
    assert (result.exit_code, sent) == (3, [])
    assert "soak: all nodes have run Kafka 4.4 for 1 h of 1 d" in result.stdout
    result, sent = finalize("--yes", "--accept", "soak", seen=(state, state, FINALIZED))
    assert (result.exit_code, sent) == (0, [True, False])
    assert "soak: accepted: all nodes have run" in result.stdout
    result, sent = finalize("--yes", "--accept", "levels", seen=())
    assert (code(result), sent) == (2, [])


def test_other_plans_are_refused(finalize: Finalize, tmp_path: Path) -> None:
    """Of another cluster, edited, missing, or none."""
    file = tmp_path / "other.yaml"
    file.write_text(plan_text(replace(PLAN, cluster=ClusterId("x"))))
    result, sent = finalize("--yes", file=file)
    assert (code(result), sent) == (2, [])
    assert "the plan is of the cluster x, and this is" in reason(result)
    file.write_text(plan_text(PLAN).replace("soak_hours: 24.0", "soak_hours: 1.0"))
    result, sent = finalize("--yes", file=file)
    assert (result.exit_code, sent) == (3, [])
    assert "the plan was edited" in result.stdout
    for path in (tmp_path / "none", tmp_path):
        result, sent = finalize("--yes", file=path)
        assert (code(result), "cannot be read" in reason(result)) == (2, True)


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch, plan: Path) -> Callable[..., Result]:
    """Runs a command while these events are read of the cluster."""
    del plan  # sets the time

    def run(*arguments: str, seen: MonitorState | Exception = BEFORE) -> Result:
        def read(_: ClusterSection, reading: LogReading | None = None) -> ClusterImage:
            assert reading is not None
            if isinstance(seen, Exception):
                raise seen
            return seen.image

        monkeypatch.setattr(reading, "read_image", read)
        return CliRunner().invoke(app, ["upgrade", *arguments, *AT])

    return run


def test_a_plan_is_shown_and_written(upgrade: Callable[..., Result], tmp_path: Path) -> None:
    """Each step with its commands and its way back; the file is the plan."""
    out = tmp_path / "made.yaml"
    result = upgrade("plan", "--target", "4.4", "--out", str(out))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"Plan for cluster {r.CLUSTER}  Kafka 3.9 → Kafka 4.4, KRaft mode")
    assert "5. Finalize the levels of Kafka 4.4  POINT OF NO RETURN" in lines
    assert f"   $ featurewatch upgrade check restart --node 2 --wait {' '.join(AT)}" in lines
    assert sum(line.startswith("   way back: ") for line in lines) == 6
    assert out.read_text().startswith("format: 1\n")
    document = json.loads(upgrade("plan", "--target", "4.4", "--json").stdout)
    assert [step["id"] for step in document["steps"]][-2:] == ["finalize", "dynamic-quorum"]
    assert code(upgrade("plan", "--target", "9.9")) == 2
    assert code(upgrade("plan", "--target", "4.4", "--out", str(tmp_path))) == 2


@pytest.mark.parametrize(
    "made",
    [
        PLAN,
        planned(kraft(dict.fromkeys((1, 2, 3), "4.0"), {4: "4.0"}, level=25), "4.2"),
        planned(kraft(dict.fromkeys((1, 2, 3), "3.4"), {4: "3.4"}, level=5), "4.4"),
        planned(zookeeper(), "4.4", running="3.6"),
    ],
    ids=["3.9", "4.0", "3.4", "zookeeper"],
)
def test_commands_to_copy_are_accepted(made: Plan) -> None:
    """Every command of featurewatch in a plan, and the downgrade in its way back."""
    lines = [line for step in made.steps for line in step.commands]
    lines += [part for step in made.steps for part in step.way_back.split("`")]
    ours = [line for line in lines if line.startswith("featurewatch ")]
    assert len(ours) >= 8
    for line in ours:
        checks.parsed(line.replace("--node ID", "--node 1"))


def test_the_status_leads_to_the_next_node(upgrade: Callable[..., Result], plan: Path) -> None:
    """With its command; in JSON, too."""
    result = upgrade("status", "--plan", str(plan), seen=rolled(2))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "✓ 1. Check that nothing is in the way" in lines
    assert any(line.startswith("→ 2. Restart the controllers") for line in lines)
    assert "Next: node 3." in lines
    document = json.loads(upgrade("status", "--plan", str(plan), "--json", seen=rolled(2)).stdout)
    assert (document["next_node"], document["verdict"]) == (3, "yes")
    soaking = upgrade("status", "--plan", str(plan), seen=rolled(2, 3, 1, 4, 5, hours=99))
    assert (soaking.exit_code, "Not yet: see above." in soaking.stdout) == (3, True)


def test_a_cluster_that_is_not_read_is_unknown(upgrade: Callable[..., Result], plan: Path) -> None:
    """One line, and 4."""
    error = ClusterNotReadError("kafka:9093 does not answer")
    for command in (("status", "--plan", str(plan)), ("check", "restart", "--node", "1")):
        result = upgrade(*command, seen=error)
        assert (result.exit_code, result.stdout) == (4, "")
        assert "does not answer" in result.stderr
        result = upgrade(*command, "--json", seen=error)
        document = json.loads(result.stdout)
        assert (result.exit_code, document["verdict"]) == (4, "unknown")
        assert document["reasons"] == ["kafka:9093 does not answer"]
        assert [one["name"] for one in document["checks"]] == ["log"]


def test_a_way_back_reads_the_nodes_directory(
    upgrade: Callable[..., Result], tmp_path: Path
) -> None:
    """Only with the release; a directory of another node is wrong usage, and none is unknown."""
    check = ("check", "restart", "--node", "4", "--json")
    assert code(upgrade(*check, "--node-directory", str(tmp_path))) == 2
    assert code(upgrade(*check, "--release", "9.9")) == 2
    result = upgrade(*check, "--release", "3.9", "--node-directory", str(tmp_path / "none"))
    assert (code(result), "there is no directory" in reason(result)) == (2, True)
    found = json.loads(upgrade(*check, "--release", "3.9").stdout)["checks"]
    assert [(one["name"], one["verdict"]) for one in found[-2:]] == [
        ("levels", "yes"),
        ("snapshot", "unknown"),
    ]
    accepted = upgrade(*check, "--release", "3.9", "--accept", "snapshot")
    assert json.loads(accepted.stdout)["checks"][-1]["text"].startswith("accepted: whether node 4")


def test_a_plan_of_a_patch(upgrade: Callable[..., Result], tmp_path: Path) -> None:
    """All nodes run 3.9 already: restarts alone, and what is not known."""
    file = tmp_path / "patch.yaml"
    made = upgrade("plan", "--target", "3.9.2", "--out", str(file))
    assert "2. Restart the controllers on Kafka 3.9.2" in made.stdout
    assert "which patch release a node runs is not known" in made.stdout
    shown = upgrade("status", "--plan", str(file))
    assert "! which patch release a node runs is not known" in shown.stdout
    assert "Complete" not in shown.stdout
