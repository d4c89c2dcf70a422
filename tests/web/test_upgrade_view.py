"""The upgrade of a cluster as the page leads it: the plan, the next step, and what is unknown."""

import shlex
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from featurewatch.controller.kraft.releases import release_of
from featurewatch.monitor.quorum.report import QuorumReport, quorum_report
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import PlanError, PlanRequest, make_plan
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.web.views.upgrade import MAX_NODES, UpgradeRequest, upgrade_document
from tests.monitor.upgrade.states import BEFORE, BROKERS, CONTROLLERS, LIMITS, kraft, zookeeper
from tests.monitor.upgrade.states import NOW_MS as LATER_MS
from tests.simulation import records as r
from tests.web.rolls import ROLLED, publish, rolled, rolling
from tests.web.samples import NOW_MS, alert_of, read_model
from tests.web.sites import site

PATH = f"/clusters/{ROLLED}/upgrade"


def led(
    state: MonitorState,
    target: str = "",
    past: Collection[str] = (),
    doubt: str | None = None,
) -> dict[str, Any]:
    """The document of a state."""
    release = release_of(target) if target else None
    request = UpgradeRequest(release, past, doubt, "0.1.0", LATER_MS)
    return upgrade_document(state, request, LIMITS)


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    """The verdict of each check."""
    return {check["name"]: check["verdict"] for check in found["checks"]}


def with_quorum(state: MonitorState, *silent: int) -> MonitorState:
    """The state in which the active controller has described the voters 1 to 3."""
    states = {one: "silent" if one in silent else "following" for one in (1, 2, 3)}
    voters = [r.replica(one, state=name) for one, name in states.items()]
    answers = replace(state.image.answers, quorum=r.quorum(voters, seen_ms=LATER_MS))
    return replace(state, image=replace(state.image, answers=answers))


def test_the_plan_is_that_of_the_command() -> None:
    """The same steps with the same way back, and a command for the first node."""
    found = led(BEFORE, "4.3")
    plan = make_plan(BEFORE, PlanRequest(release_of("4.3"), LATER_MS, "0.1.0"), LIMITS)
    assert [(one["id"], one["way_back"]) for one in found["steps"]] == [
        (step.id, step.way_back) for step in plan.steps
    ]
    assert found["after"] == plan.after
    assert found["no_return"] == "finalize"
    assert (found["current"], found["next_node"]) == ("roll-controllers", 2)
    assert shlex.split(found["commands"][0])[:6] == [
        "featurewatch", "upgrade", "check", "restart", "--node", "2",
    ]  # fmt: skip


def test_a_fault_on_the_way_is_listed_once() -> None:
    """With its source; it is no line of the first step, as it is in the plan's file."""
    found = led(BEFORE, "4.3")
    assert {"KIP-896", "KAFKA-21117"} <= {fault["id"] for fault in found["advisories"]}
    assert not any("known fault" in text for text in found["steps"][0]["by_hand"])
    assert any("Java 17" in text for text in found["steps"][0]["by_hand"])


@pytest.mark.parametrize(
    ("controllers", "brokers", "level", "target", "reason", "current"),
    [
        ("3.9", "3.9", 21, "4.4", "newest", "roll-controllers"),
        ("4.3", "3.9", 21, "4.3", "rolling", "roll-brokers"),
        ("4.0", "4.0", 21, "4.0", "unfinalized", "finalize"),
        ("3.9", "3.9", 20, "3.9", "unfinalized", "finalize"),
    ],
)
def test_the_target_is_that_of_the_roll(
    controllers: str, brokers: str, level: int, target: str, reason: str, current: str
) -> None:
    """Else that whose levels are missing, else the newest that is known."""
    state = kraft(dict.fromkeys((1, 2, 3), controllers), {4: brokers}, level=level)
    found = led(state)
    assert (found["target"], found["target_reason"], found["current"]) == (target, reason, current)


def test_the_page_says_what_it_cannot_know() -> None:
    """Partitions never, whatever a worker follows; the voters, where nobody described them."""
    found = led(BEFORE, "4.3")
    assert found["verdict"] == "unknown"
    assert {name for name, verdict in verdicts(found).items() if verdict != "yes"} == {"quorum"}
    brokers = led(with_quorum(kraft(dict.fromkeys((1, 2, 3), "4.3"), BROKERS)))
    (unknown,) = (check for check in brokers["checks"] if check["verdict"] != "yes")
    assert (brokers["next_node"], unknown["name"]) == (4, "partitions")
    assert "--operations" in unknown["remedy"]
    assert brokers["commands"]


def test_a_controller_may_be_restarted_while_the_others_fetch() -> None:
    """By the description of the active controller; not if the majority would be lost."""
    assert led(with_quorum(BEFORE), "4.3")["verdict"] == "yes"
    found = led(with_quorum(BEFORE, 3), "4.3")
    assert (found["verdict"], verdicts(found)["quorum"]) == ("no", "no")


def test_levels_are_offered_when_nothing_is_in_the_way() -> None:
    """The command that changes levels is held back until then."""
    rolled_out = dict.fromkeys((1, 2, 3), "4.0")
    soaking = led(kraft(rolled_out, {4: "4.0"}, at=90))
    assert (soaking["current"], verdicts(soaking)["soak"]) == ("soak", "no")
    assert "10 h of 1 d" in soaking["steps"][3]["progress"]
    held = led(kraft(rolled_out, {4: "4.0"}))
    assert (held["current"], held["verdict"], held["commands"]) == ("finalize", "unknown", ())
    done = led(kraft(dict.fromkeys((1, 2, 3), "3.9"), {4: "3.9"}), "3.9")
    assert done["complete"]
    assert done["no_return"] is None


def test_an_old_state_is_unknown() -> None:
    """Also of an upgrade that was complete: what is shown is the last that was known."""
    found = led(BEFORE, "3.9", doubt="no worker has published its state for more than a minute")
    assert (found["complete"], found["verdict"]) == (False, "unknown")
    assert [check["name"] for check in found["checks"]] == ["state"]


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        ((), "the release that they ran before"),
        (("3.7", "3.9", "4.4", "unknown"), "Kafka 3.9"),
        (("3.5",), "the release that they ran before"),
    ],
)
def test_the_way_back_of_a_finished_roll(past: tuple[str, ...], expected: str) -> None:
    """To what nodes were seen to run, if it starts with the current levels."""
    found = led(kraft(dict.fromkeys((1, 2, 3), "4.0"), {4: "4.0"}), past=past)
    assert f"restart the nodes on {expected}" in found["steps"][1]["way_back"]


def test_zookeeper_mode_has_a_preflight() -> None:
    """What only the brokers know is unknown, with the option that asks them."""
    found = led(zookeeper(), "4.4")
    assert (found["mode"], found["current"], found["verdict"]) == (
        "zookeeper",
        "bridge-software",
        "unknown",
    )
    assert verdicts(found)["inter.broker.protocol.version"] == "unknown"
    assert found["no_return"] == "bridge-protocol"
    assert found["advisories"]


def test_commands_name_the_cluster_as_a_shell_reads_it() -> None:
    """Whatever its id is; nothing in it reaches a terminal."""
    image = replace(BEFORE.image, cluster=ClusterId("a'; rm -rf ~ #\x1b[201~"))
    found = led(replace(BEFORE, image=image), "4.3")
    for command in (found["save_command"], *found["commands"]):
        assert command.isprintable()
        words = shlex.split(command)
        assert words[words.index("--cluster") + 1] == "a'; rm -rf ~ #[201~"


def test_a_large_cluster_is_bounded() -> None:
    """The first nodes of a step are listed, and all are counted."""
    found = led(kraft(CONTROLLERS, dict.fromkeys(range(4, 504), "3.9")), "4.3")
    roll = next(step for step in found["steps"] if step["id"] == "roll-brokers")
    assert len(roll["nodes"]) == len(roll["commands"]) == MAX_NODES
    assert roll["node_count"] == 500


def test_without_a_plan_there_is_a_reason() -> None:
    """A cluster beyond the target, and one that is not known."""
    with pytest.raises(PlanError, match=r"there is no upgrade to 3\.7"):
        led(BEFORE, "3.7")
    with pytest.raises(PlanError, match="not known well enough"):
        led(MonitorState.of(ClusterId("nobody")))


async def test_the_api_serves_it() -> None:
    """The roll in its middle; an alert counts at once, and wrong parameters are explained."""
    async with rolled() as served:
        found = await served.body(PATH)
        assert (found["target"], found["target_reason"]) == ("4.0", "rolling")
        assert found["checks"][2]["verdict"] == "yes"
        served.apply(alert_of(ROLLED, 2))
        assert (await served.body(PATH))["verdict"] == "no"
        for query, status in {"target=nonsense": 400, "x=1": 400, "target=3.8": 409}.items():
            response = await served.get(f"{PATH}?{query}")
            assert response.status == status, query
            assert (await response.json())["detail"]
        image = rolling("4.0", "4.0", "4.0")
        publish(image, served.server.model, served.server.rows, NOW_MS)
        after = await served.body(PATH)
    assert after["current"] == "finalize"
    assert "restart the nodes on Kafka 3.9" in after["steps"][1]["way_back"]


async def test_without_rows_it_is_not_known() -> None:
    """503 with the reason, not an empty plan."""
    async with site(read_model()) as served:
        served.server.rows.end_reading()
        publish(rolling("4.0"), served.server.model, type(served.server.rows)(), NOW_MS)
        response = await served.get(PATH)
        assert response.status == 503
        assert "No worker has stored rows" in await response.text()


async def test_the_quorum_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all requests that come while the cluster's rows are the same."""
    computed: list[ClusterImage] = []

    def count(image: ClusterImage) -> QuorumReport:
        computed.append(image)
        return quorum_report(image)

    monkeypatch.setattr("featurewatch.web.views.computed.quorum_report", count)
    async with rolled() as served:
        for _ in range(3):
            await served.body(f"/clusters/{ROLLED}/quorum")
        assert len(computed) == 1
        publish(rolling("4.0", "4.0"), served.server.model, served.server.rows, NOW_MS)
        await served.body(f"/clusters/{ROLLED}/quorum")
        assert len(computed) == 2
